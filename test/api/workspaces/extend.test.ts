// Owners and agents move the deadline of a running workspace.
import { expect, test } from "bun:test";
import { sha256, uuid } from "#base/ids.ts";
import type { Generic } from "#schema/generic.ts";
import type { Client } from "#src/client.ts";
import { getContext } from "#test/support/seed.ts";
import { ECHO } from "#test/support/workspaces.ts";
import {
  awaitOutcome,
  type ClockWorld,
  HOUR,
  MINUTE,
  openClockWorld,
  read,
  toMinute,
  toWorkspacePath,
} from "./clock-world.ts";

const createAgentClient = async (world: ClockWorld, workspace_id: string): Promise<Client> => {
  const token = uuid();
  const sql = "update agents set token_hash = ? where workspace_id = ?";
  await getContext(world.server).store.commit([{ sql, rows: [[sha256(token), workspace_id]] }]);
  return world.admin.withToken(token);
};

test("[TI-8] the response contains the new deadline; each forbidden change has its own status", async () => {
  const template = { autostop_requirement_days: ["wednesday"] };
  await using world = await openClockWorld({ template });
  const workspace = await world.make({ ttl_ms: HOUR });
  const toDeadline = (ms: number) => new Date(world.clock.now() + ms).toISOString();
  const extend = (body: unknown, target = workspace) =>
    world.owner.put<Generic>(toWorkspacePath(target, "/extend"), body);
  expect((await extend({ deadline: toDeadline(5 * HOUR) })).message).toContain("2030-01-01T17:00:00.000Z");
  expect(toMinute((await read(world.owner, workspace)).latest_build.deadline)).toBe("2030-01-01T17:00");
  expect((await extend({ deadline: toDeadline(31 * MINUTE) })).message).toContain("2030-01-01T12:31");
  expect((await extend({ deadline: "2030-01-01T20:00:00+02:00" })).message).toContain("2030-01-01T18:00");
  expect(await awaitOutcome(extend({ deadline: toDeadline(28 * MINUTE) }))).toBe("400 deadline");
  expect(await awaitOutcome(extend({ deadline: toDeadline(13 * HOUR) }))).toBe("400 deadline");
  expect((await awaitOutcome(extend({}))).slice(0, 3)).toBe("400");
  expect((await awaitOutcome(extend({ deadline: "tomorrow" }))).slice(0, 3)).toBe("400");
  await world.runBuild(workspace.id, "stop");
  expect(await awaitOutcome(extend({ deadline: toDeadline(HOUR) }))).toBe("409");
  await world.runBuild(workspace.id, "delete");
  expect(await awaitOutcome(extend({ deadline: toDeadline(HOUR) }))).toBe("410");
});

test("[TI-8] moving the deadline while the workspace starts returns 409", async () => {
  await using world = await openClockWorld({ manifest: { ...ECHO, echo: { hang: true } } });
  const created = await world.owner.post<{ id: string }>("/api/v2/users/me/workspaces", {
    name: "dev",
    template_id: world.template_id,
    ttl_ms: HOUR,
  });
  const deadline = new Date(world.clock.now() + HOUR).toISOString();
  expect(await awaitOutcome(world.owner.put(toWorkspacePath(created, "/extend"), { deadline }))).toBe("409");
});

test("[TI-9] an agent can move the deadline of its own workspace only", async () => {
  await using world = await openClockWorld();
  const ownWorkspace = await world.make({ ttl_ms: HOUR });
  const otherWorkspace = await world.make({ ttl_ms: HOUR });
  const agent = await createAgentClient(world, ownWorkspace.id);
  const deadline = new Date(world.clock.now() + 3 * HOUR).toISOString();
  expect(await awaitOutcome(agent.put(toWorkspacePath(ownWorkspace, "/extend"), { deadline }))).toBe("ok");
  expect(await awaitOutcome(agent.put(toWorkspacePath(otherWorkspace, "/extend"), { deadline }))).toBe("404");
  expect(await awaitOutcome(agent.put(toWorkspacePath(ownWorkspace, "/ttl"), { ttl_ms: HOUR }))).toBe("401");
  const { entries } = await world.loadActivity(ownWorkspace.id);
  expect(entries[0]).toMatchObject({
    reason: "extend",
    actor: { kind: "agent", name: "dev" },
    old_deadline: "2030-01-01T13:00:00.000Z",
    new_deadline: "2030-01-01T15:00:00.000Z",
  });
  await world.runBuild(ownWorkspace.id, "stop");
  expect(await awaitOutcome(agent.put(toWorkspacePath(ownWorkspace, "/extend"), { deadline }))).toBe("401");
});
