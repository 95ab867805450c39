// An app's status reports as activity of its workspace.
import { expect, test } from "bun:test";
import { sha256, uuid } from "#base/ids.ts";
import { getContext } from "#test/support/seed.ts";
import { HOUR, MINUTE, openClockWorld, read, toMinute } from "./clock-world.ts";

test("[TI-30] an app that starts or finishes work extends the deadline; one that continues, or is idle, does not", async () => {
  const resources = [{ name: "main", agents: [{ name: "dev", apps: [{ slug: "ai" }] }] }];
  await using world = await openClockWorld({ manifest: { provisioner: "echo", resources } });
  const workspace = await world.make({ ttl_ms: HOUR });
  const token = uuid();
  const sql = "update agents set token_hash = ? where workspace_id = ?";
  await getContext(world.server).store.commit([{ sql, rows: [[sha256(token), workspace.id]] }]);
  const reportState = async (state: string): Promise<string | undefined> => {
    await world.advance(10 * MINUTE);
    const agent = world.admin.withToken(token);
    await agent.patch<unknown>("/api/v2/workspaceagents/me/app-status", {
      app_slug: "ai",
      state,
      message: "",
      uri: "",
    });
    return toMinute((await read(world.owner, workspace)).latest_build.deadline);
  };
  expect(await reportState("idle")).toBe("2030-01-01T13:00");
  expect(await reportState("working")).toBe("2030-01-01T13:20");
  expect(await reportState("working")).toBe("2030-01-01T13:20");
  expect(await reportState("complete")).toBe("2030-01-01T13:40");
  expect(await reportState("failure")).toBe("2030-01-01T13:40");
});
