// Autostop of workspaces at the deadline, after server downtime and for suspended owners, and activity that extends the deadline.
import { expect, test } from "bun:test";
import { sha256, uuid } from "#base/ids.ts";
import type { WorkspaceActivity } from "#schema/workspaces/schedule.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Client } from "#src/client.ts";
import { toMetrics } from "#src/wire/busy-metric.ts";
import { createChat } from "#test/support/chats.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { getContext } from "#test/support/seed.ts";
import { tempDirectory } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, ECHO, openWorld } from "#test/support/workspaces.ts";
import { connectAgent } from "../agents/rpc-agent.ts";
import { type ClockWorld, HOUR, MINUTE, openClockWorld, read, toMinute, toWorkspacePath } from "./clock-world.ts";

test("[TI-14] [TI-13] a running workspace stops at its deadline, and its activity shows when and why, before and after", async () => {
  await using world = await openClockWorld();
  const workspace = await world.make({ ttl_ms: HOUR });
  const before = await world.loadActivity(workspace.id);
  expect(before).toMatchObject({
    deadline: "2030-01-01T13:00:00.000Z",
    next: { what: "stop", at: "2030-01-01T13:00:00.000Z", why: "It reached its deadline." },
    entries: [{ reason: "start", actor: { kind: "server" }, new_deadline: "2030-01-01T13:00:00.000Z" }],
  });
  expect(await world.listTimers(workspace.id)).toEqual(["2030-01-01T13:00:00.000Z"]);
  expect((await world.advance(HOUR - 1000, workspace.id))?.latest_build.build_number).toBe(1);
  const stopped = await world.advance(1000, workspace.id);
  expect(stopped?.latest_build).toMatchObject({ status: "stopped", reason: "autostop", build_number: 2 });
  const after = await world.loadActivity(workspace.id);
  expect(after.next).toBeNull();
  expect(after.entries[0]).toMatchObject({
    reason: "autostop",
    detail: "It reached its deadline.",
    at: "2030-01-01T13:00:00.000Z",
    old_deadline: "2030-01-01T13:00:00.000Z",
  });
  expect(after.entries[0]?.new_deadline).toBeUndefined();
  expect(await world.listTimers(workspace.id)).toEqual([]);
});

test("[TI-15] the server runs actions that became due while it was down", async () => {
  using temp = tempDirectory();
  const clock = new ManualClock(Date.parse("2030-01-01T12:00:00Z"));
  const ids: string[] = [];
  let token = "";
  {
    await using world = await openClockWorld({ directory: temp.path, clock });
    ids.push((await world.make({ ttl_ms: HOUR })).id);
    ids.push((await world.make({ autostart_schedule: "CRON_TZ=UTC 0 14 * * *" })).id);
    await world.runBuild(ids[1] as string, "stop");
    token = world.owner_token;
  }
  clock.leap(9 * HOUR);
  await using world = await openWorld({ directory: temp.path, clock });
  const owner = new Client(world.server.url, token);
  await getContext(world.server).scheduler.tick();
  const [overdueStop, overdueStart] = await Promise.all(ids.map((id) => awaitBuild(owner, id)));
  expect(overdueStop?.latest_build).toMatchObject({ status: "stopped", reason: "autostop" });
  expect(overdueStart?.latest_build).toMatchObject({ status: "running", reason: "autostart" });
  expect(toMinute(overdueStart?.next_start_at)).toBe("2030-01-02T14:00");
});

test("[TI-16] the workspaces of a suspended owner stop; those of other owners continue", async () => {
  await using world = await openClockWorld();
  const workspace = await world.make();
  const otherWorkspace = await world.admin.post<Workspace>("/api/v2/users/me/workspaces", {
    name: "own",
    template_id: world.template_id,
  });
  await awaitBuild(world.admin, otherWorkspace.id);
  await world.admin.put(`/api/v2/users/${world.owner_id}/status/suspend`);
  await world.settle();
  const stopped = await awaitBuild(world.admin, workspace.id);
  expect(stopped.latest_build).toMatchObject({ status: "stopped", reason: "autostop" });
  const { entries } = await world.admin.get<WorkspaceActivity>(toWorkspacePath(workspace, "/activity"));
  expect(entries[0]).toMatchObject({ reason: "owner_suspended", detail: "Its owner is suspended." });
  expect((await read(world.admin, otherWorkspace)).latest_build.status).toBe("running");
});

test("[TI-21] a workspace whose start failed stops after the template's failure period", async () => {
  const manifest = { ...ECHO, echo: { error: "no disk" } };
  await using world = await openClockWorld({ template: { failure_ttl_ms: HOUR }, manifest });
  const workspace = await world.make();
  expect(workspace.latest_build.status).toBe("failed");
  expect((await world.loadActivity(workspace.id)).next).toMatchObject({ what: "stop", at: "2030-01-01T13:00:00.000Z" });
  const stopped = await world.advance(HOUR, workspace.id);
  expect(stopped?.latest_build).toMatchObject({ build_number: 2, transition: "stop", reason: "autostop" });
});

/** Gives the workspace's agent a known token, and returns it. */
const setAgentToken = async (world: ClockWorld, workspace_id: string): Promise<string> => {
  const token = uuid();
  const sql = "update agents set token_hash = ? where workspace_id = ?";
  await getContext(world.server).store.commit([{ sql, rows: [[sha256(token), workspace_id]] }]);
  return token;
};

test("[TI-10] [TI-11] [TI-13] open connections and active apps extend the deadline and appear in the activity; reading and watching do not", async () => {
  await using world = await openClockWorld();
  const workspace = await world.make({ ttl_ms: 2 * HOUR });
  const [agent] = workspace.latest_build.resources[0]?.agents ?? [];
  const loadDeadline = async () => toMinute((await read(world.owner, workspace)).latest_build.deadline);
  await world.advance(90 * MINUTE);
  await using connection = await connectAgent(world.server, await setAgentToken(world, workspace.id));
  await connection.agent.updateStats({ stats: {} });
  await world.owner.get(toWorkspacePath(workspace));
  await world.loadActivity(workspace.id);
  await world.owner.post(toWorkspacePath(workspace, "/usage"));
  {
    using watcher = await world.owner.socket(toWorkspacePath(workspace, "/watch-ws"));
    await watcher.next();
  }
  expect(await loadDeadline()).toBe("2030-01-01T14:00");
  await connection.agent.updateStats({ stats: { connectionCount: 1n } });
  expect(await loadDeadline()).toBe("2030-01-01T14:30");
  await world.advance(MINUTE);
  await connection.agent.updateStats({ stats: { sessionCountSsh: 2n } });
  expect(await loadDeadline()).toBe("2030-01-01T14:30");
  await world.advance(29 * MINUTE);
  await world.owner.post(toWorkspacePath(workspace, "/usage"), { agent_id: agent?.id, app_name: "ssh" });
  expect(await loadDeadline()).toBe("2030-01-01T15:00");
  const { entries, next } = await world.loadActivity(workspace.id);
  expect(
    entries.map(({ reason, detail, actor, new_deadline }) => [reason, detail, actor.name, toMinute(new_deadline)]),
  ).toEqual([
    ["activity", "ssh is in use.", "ada", "2030-01-01T15:00"],
    ["activity", "Connections to the workspace are open.", "agent", "2030-01-01T14:30"],
    ["start", "It has started.", "server", "2030-01-01T14:00"],
  ]);
  expect(toMinute(next?.at)).toBe("2030-01-01T15:00");
  expect((await world.advance(HOUR, workspace.id))?.latest_build.reason).toBe("autostop");
});

test("[TI-32] [TI-33] active jobs and chats keep a workspace running, and its activity names them; idle streams do not", async () => {
  await using world = await openClockWorld();
  const workspace = await world.make({ ttl_ms: 2 * HOUR });
  const loadDeadline = async () => toMinute((await read(world.owner, workspace)).latest_build.deadline);
  const loadKeptBy = async () => (await world.loadActivity(workspace.id)).kept_by;
  await world.advance(90 * MINUTE);
  await using connection = await connectAgent(world.server, await setAgentToken(world, workspace.id));
  const metrics = toMetrics([
    { command: "npm run build", load: 0.9 },
    { command: "make", load: 0.2 },
  ]);
  await connection.agent.updateStats({ stats: { metrics } as never });
  expect([await loadDeadline(), await loadKeptBy()]).toEqual(["2030-01-01T14:30", ["npm run build", "make"]]);
  const { entries } = await world.loadActivity(workspace.id);
  expect(entries[0]?.detail).toBe("Kept running by: npm run build, make");
  await connection.agent.updateStats({
    stats: { metrics: [{ name: "other", type: 2, value: 1, labels: [] }] } as never,
  });
  await world.advance(15 * MINUTE);
  // An unused editor in a browser tab only has open streams.
  await connection.agent.updateStats({ stats: { connectionCount: 2n, metrics: toMetrics([], 2) } as never });
  expect([await loadDeadline(), await loadKeptBy()]).toEqual(["2030-01-01T14:30", []]);

  const { organization_id } = workspace;
  const chat = await createChat({ owner: world.owner, organization_id }, "hang: on", { workspace_id: workspace.id });
  await until(async () => (await loadKeptBy()).includes("a chat"));
  await world.advance(45 * MINUTE);
  expect((await read(world.owner, workspace)).latest_build.status).toBe("running");
  expect((await world.loadActivity(workspace.id)).entries[0]).toMatchObject({
    reason: "activity",
    detail: "A chat is working.",
  });
  await world.owner.post(`/api/v2/chats/${chat.id}/interrupt`);
  await until(async () => (await loadKeptBy()).length === 0);
  expect((await world.advance(HOUR, workspace.id))?.latest_build.reason).toBe("autostop");
});

test("[TI-12] the server stores a workspace's last use within a minute, and when it stops", async () => {
  using temp = tempDirectory();
  const clock = new ManualClock(Date.parse("2030-01-01T12:00:00Z"));
  let workspace: Workspace | undefined;
  let token = "";
  {
    await using world = await openClockWorld({ directory: temp.path, clock });
    workspace = await world.make();
    token = world.owner_token;
    const loadLastUsed = async () => toMinute((await read(world.owner, workspace as Workspace)).last_used_at);
    clock.advance(10 * 1000);
    await world.owner.post(toWorkspacePath(workspace, "/usage"));
    expect(await loadLastUsed()).toBe("2030-01-01T12:00");
    await world.advance(5 * MINUTE);
    expect(await loadLastUsed()).toBe("2030-01-01T12:05");
    await world.advance(5 * MINUTE);
    expect(await loadLastUsed()).toBe("2030-01-01T12:05");
    await world.owner.post(toWorkspacePath(workspace, "/usage"));
  }
  await using world = await openWorld({ directory: temp.path, clock });
  expect(toMinute((await read(new Client(world.server.url, token), workspace)).last_used_at)).toBe("2030-01-01T12:10");
});

test("[TI-13] the activity keeps the newest 50 entries", async () => {
  await using world = await openClockWorld();
  const workspace = await world.make({ ttl_ms: HOUR });
  const start = world.clock.now();
  for (let i = 1; i <= 60; i++) {
    const deadline = new Date(start + HOUR + i * MINUTE).toISOString();
    await world.owner.put(toWorkspacePath(workspace, "/extend"), { deadline });
  }
  const { entries } = await world.loadActivity(workspace.id);
  expect(entries).toHaveLength(50);
  expect(entries[0]?.new_deadline).toBe(new Date(start + HOUR + 60 * MINUTE).toISOString());
  expect(new Set(entries.map(({ reason }) => reason))).toEqual(new Set(["extend"]));
  expect(await world.listTimers(workspace.id)).toEqual([new Date(start + 2 * HOUR).toISOString()]);
  expect(toMinute(entries.at(-1)?.old_deadline)).toBe("2030-01-01T13:10");
});
