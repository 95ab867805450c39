// An app's status reports as activity of its workspace.
import { expect, setDefaultTimeout, test } from "bun:test";
import { sha256, uuid } from "#base/ids.ts";
import { scaled } from "#test/support/pace.ts";
import { contextOf } from "#test/support/seed.ts";
import { HOUR, MINUTE, minuteOf, openClockwork, read } from "./clockwork.ts";

// A loaded machine may be slow.
setDefaultTimeout(scaled(60_000));

test("[TI-30] an app that starts or finishes work extends the deadline; one that continues, or is idle, does not", async () => {
  const resources = [{ name: "main", agents: [{ name: "dev", apps: [{ slug: "ai" }] }] }];
  await using time = await openClockwork({ manifest: { provisioner: "echo", resources } });
  const one = await time.make({ ttl_ms: HOUR });
  const token = uuid();
  const sql = "update agents set token_hash = ? where workspace_id = ?";
  await contextOf(time.server).store.commit([{ sql, rows: [[sha256(token), one.id]] }]);
  const says = async (state: string): Promise<string | undefined> => {
    await time.pass(10 * MINUTE);
    const agent = time.admin.as(token);
    await agent.patch<unknown>("/api/v2/workspaceagents/me/app-status", {
      app_slug: "ai",
      state,
      message: "",
      uri: "",
    });
    return minuteOf((await read(time.owner, one)).latest_build.deadline);
  };
  expect(await says("idle")).toBe("2030-01-01T13:00");
  expect(await says("working")).toBe("2030-01-01T13:20");
  expect(await says("working")).toBe("2030-01-01T13:20");
  expect(await says("complete")).toBe("2030-01-01T13:40");
  expect(await says("failure")).toBe("2030-01-01T13:40");
});
