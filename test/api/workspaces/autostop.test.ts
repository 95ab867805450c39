// Autostop of workspaces: at the deadline, after server downtime, for suspended owners; and what extends the deadline.
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
import { type Clockwork, HOUR, MINUTE, openClockwork, read, toMinute, toWorkspacePath } from "./clock-world.ts";

test("[TI-14] [TI-13] a running workspace is stopped at its deadline, and says why and when before and after", async () => {
  await using time = await openClockwork();
  const workspace = await time.make({ ttl_ms: HOUR });
  const before = await time.activity(workspace.id);
  expect(before).toMatchObject({
    deadline: "2030-01-01T13:00:00.000Z",
    next: { what: "stop", at: "2030-01-01T13:00:00.000Z", why: "It reached its deadline." },
    entries: [{ reason: "start", actor: { kind: "server" }, new_deadline: "2030-01-01T13:00:00.000Z" }],
  });
  expect(await time.timers(workspace.id)).toEqual(["2030-01-01T13:00:00.000Z"]);
  expect((await time.pass(HOUR - 1000, workspace.id))?.latest_build.build_number).toBe(1);
  const stopped = await time.pass(1000, workspace.id);
  expect(stopped?.latest_build).toMatchObject({ status: "stopped", reason: "autostop", build_number: 2 });
  const after = await time.activity(workspace.id);
  expect(after.next).toBeNull();
  expect(after.entries[0]).toMatchObject({
    reason: "autostop",
    detail: "It reached its deadline.",
    at: "2030-01-01T13:00:00.000Z",
    old_deadline: "2030-01-01T13:00:00.000Z",
  });
  expect(after.entries[0]?.new_deadline).toBeUndefined();
  expect(await time.timers(workspace.id)).toEqual([]);
});

test("[TI-15] actions that became due while the server was down run after its start", async () => {
  using temp = tempDirectory();
  const clock = new ManualClock(Date.parse("2030-01-01T12:00:00Z"));
  const ids: string[] = [];
  let token = "";
  {
    await using time = await openClockwork({ directory: temp.path, clock });
    ids.push((await time.make({ ttl_ms: HOUR })).id);
    ids.push((await time.make({ autostart_schedule: "CRON_TZ=UTC 0 14 * * *" })).id);
    await time.build(ids[1] as string, "stop");
    token = time.owner_token;
  }
  clock.leap(9 * HOUR);
  await using world = await openWorld({ directory: temp.path, clock });
  const owner = new Client(world.server.url, token);
  await getContext(world.server).scheduler.tick();
  const [late, missed] = await Promise.all(ids.map((id) => awaitBuild(owner, id)));
  expect(late?.latest_build).toMatchObject({ status: "stopped", reason: "autostop" });
  expect(missed?.latest_build).toMatchObject({ status: "running", reason: "autostart" });
  expect(toMinute(missed?.next_start_at)).toBe("2030-01-02T14:00");
});

test("[TI-16] the workspaces of a suspended owner are stopped, others continue", async () => {
  await using time = await openClockwork();
  const workspace = await time.make();
  const other = await time.admin.post<Workspace>("/api/v2/users/me/workspaces", {
    name: "own",
    template_id: time.template_id,
  });
  await awaitBuild(time.admin, other.id);
  await time.admin.put(`/api/v2/users/${time.owner_id}/status/suspend`);
  await time.settle();
  const stopped = await awaitBuild(time.admin, workspace.id);
  expect(stopped.latest_build).toMatchObject({ status: "stopped", reason: "autostop" });
  const { entries } = await time.admin.get<WorkspaceActivity>(toWorkspacePath(workspace, "/activity"));
  expect(entries[0]).toMatchObject({ reason: "owner_suspended", detail: "Its owner is suspended." });
  expect((await read(time.admin, other)).latest_build.status).toBe("running");
});

test("[TI-21] a workspace whose start has failed is stopped after the template's failure period", async () => {
  const manifest = { ...ECHO, echo: { error: "no disk" } };
  await using time = await openClockwork({ template: { failure_ttl_ms: HOUR }, manifest });
  const workspace = await time.make();
  expect(workspace.latest_build.status).toBe("failed");
  expect((await time.activity(workspace.id)).next).toMatchObject({ what: "stop", at: "2030-01-01T13:00:00.000Z" });
  const stopped = await time.pass(HOUR, workspace.id);
  expect(stopped?.latest_build).toMatchObject({ build_number: 2, transition: "stop", reason: "autostop" });
});

const agentToken = async (time: Clockwork, workspace_id: string): Promise<string> => {
  const token = uuid();
  const sql = "update agents set token_hash = ? where workspace_id = ?";
  await getContext(time.server).store.commit([{ sql, rows: [[sha256(token), workspace_id]] }]);
  return token;
};

test("[TI-10] [TI-11] [TI-13] open connections and active apps extend the deadline and are recorded; reading and watching do not", async () => {
  await using time = await openClockwork();
  const workspace = await time.make({ ttl_ms: 2 * HOUR });
  const [agent] = workspace.latest_build.resources[0]?.agents ?? [];
  const deadline = async () => toMinute((await read(time.owner, workspace)).latest_build.deadline);
  await time.pass(90 * MINUTE);
  await using connection = await connectAgent(time.server, await agentToken(time, workspace.id));
  await connection.agent.updateStats({ stats: {} });
  await time.owner.get(toWorkspacePath(workspace));
  await time.activity(workspace.id);
  await time.owner.post(toWorkspacePath(workspace, "/usage"));
  {
    using watcher = await time.owner.socket(toWorkspacePath(workspace, "/watch-ws"));
    await watcher.next();
  }
  expect(await deadline()).toBe("2030-01-01T14:00");
  await connection.agent.updateStats({ stats: { connectionCount: 1n } });
  expect(await deadline()).toBe("2030-01-01T14:30");
  await time.pass(MINUTE);
  await connection.agent.updateStats({ stats: { sessionCountSsh: 2n } });
  expect(await deadline()).toBe("2030-01-01T14:30");
  await time.pass(29 * MINUTE);
  await time.owner.post(toWorkspacePath(workspace, "/usage"), { agent_id: agent?.id, app_name: "ssh" });
  expect(await deadline()).toBe("2030-01-01T15:00");
  const { entries, next } = await time.activity(workspace.id);
  expect(
    entries.map(({ reason, detail, actor, new_deadline }) => [reason, detail, actor.name, toMinute(new_deadline)]),
  ).toEqual([
    ["activity", "ssh is in use.", "ada", "2030-01-01T15:00"],
    ["activity", "Connections to the workspace are open.", "agent", "2030-01-01T14:30"],
    ["start", "It has started.", "server", "2030-01-01T14:00"],
  ]);
  expect(toMinute(next?.at)).toBe("2030-01-01T15:00");
  expect((await time.pass(HOUR, workspace.id))?.latest_build.reason).toBe("autostop");
});

test("[TI-32] [TI-33] active jobs and chats keep a workspace running, and are named; idle streams do not", async () => {
  await using time = await openClockwork();
  const workspace = await time.make({ ttl_ms: 2 * HOUR });
  const deadline = async () => toMinute((await read(time.owner, workspace)).latest_build.deadline);
  const getKeptBy = async () => (await time.activity(workspace.id)).kept_by;
  await time.pass(90 * MINUTE);
  await using connection = await connectAgent(time.server, await agentToken(time, workspace.id));
  const metrics = toMetrics([
    { command: "npm run build", load: 0.9 },
    { command: "make", load: 0.2 },
  ]);
  await connection.agent.updateStats({ stats: { metrics } as never });
  expect([await deadline(), await getKeptBy()]).toEqual(["2030-01-01T14:30", ["npm run build", "make"]]);
  const { entries } = await time.activity(workspace.id);
  expect(entries[0]?.detail).toBe("Kept running by: npm run build, make");
  await connection.agent.updateStats({
    stats: { metrics: [{ name: "other", type: 2, value: 1, labels: [] }] } as never,
  });
  await time.pass(15 * MINUTE);
  // An unused editor in a tab only has open streams.
  await connection.agent.updateStats({ stats: { connectionCount: 2n, metrics: toMetrics([], 2) } as never });
  expect([await deadline(), await getKeptBy()]).toEqual(["2030-01-01T14:30", []]);

  const { organization_id } = workspace;
  const chat = await createChat({ owner: time.owner, organization_id }, "hang: on", { workspace_id: workspace.id });
  await until(async () => (await getKeptBy()).includes("a chat"));
  await time.pass(45 * MINUTE);
  expect((await read(time.owner, workspace)).latest_build.status).toBe("running");
  expect((await time.activity(workspace.id)).entries[0]).toMatchObject({
    reason: "activity",
    detail: "A chat is working.",
  });
  await time.owner.post(`/api/v2/chats/${chat.id}/interrupt`);
  await until(async () => (await getKeptBy()).length === 0);
  expect((await time.pass(HOUR, workspace.id))?.latest_build.reason).toBe("autostop");
});

test("[TI-12] a workspace's last use is written within a minute, and when the server stops", async () => {
  using temp = tempDirectory();
  const clock = new ManualClock(Date.parse("2030-01-01T12:00:00Z"));
  let one: Workspace | undefined;
  let token = "";
  {
    await using time = await openClockwork({ directory: temp.path, clock });
    one = await time.make();
    token = time.owner_token;
    const getLastUsed = async () => toMinute((await read(time.owner, one as Workspace)).last_used_at);
    clock.advance(10 * 1000);
    await time.owner.post(toWorkspacePath(one, "/usage"));
    expect(await getLastUsed()).toBe("2030-01-01T12:00");
    await time.pass(5 * MINUTE);
    expect(await getLastUsed()).toBe("2030-01-01T12:05");
    await time.pass(5 * MINUTE);
    expect(await getLastUsed()).toBe("2030-01-01T12:05");
    await time.owner.post(toWorkspacePath(one, "/usage"));
  }
  await using world = await openWorld({ directory: temp.path, clock });
  expect(toMinute((await read(new Client(world.server.url, token), one)).last_used_at)).toBe("2030-01-01T12:10");
});

test("[TI-13] the newest 50 entries are kept", async () => {
  await using time = await openClockwork();
  const workspace = await time.make({ ttl_ms: HOUR });
  const start = time.clock.now();
  for (let i = 1; i <= 60; i++) {
    const deadline = new Date(start + HOUR + i * MINUTE).toISOString();
    await time.owner.put(toWorkspacePath(workspace, "/extend"), { deadline });
  }
  const { entries } = await time.activity(workspace.id);
  expect(entries).toHaveLength(50);
  expect(entries[0]?.new_deadline).toBe(new Date(start + HOUR + 60 * MINUTE).toISOString());
  expect(new Set(entries.map(({ reason }) => reason))).toEqual(new Set(["extend"]));
  expect(await time.timers(workspace.id)).toEqual([new Date(start + 2 * HOUR).toISOString()]);
  expect(toMinute(entries.at(-1)?.old_deadline)).toBe("2030-01-01T13:10");
});
