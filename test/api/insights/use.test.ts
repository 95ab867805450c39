// Counting usage: what counts, how it is stored, and that no usage is lost or counted twice.
import { expect, test } from "bun:test";
import { UsageCollector } from "#actors/usage/collector.ts";
import { uuid } from "#base/ids.ts";
import { updateBy } from "#db/engine/sql.ts";
import type { Store } from "#db/engine/store.ts";
import { workspaces } from "#db/schema/workspaces.ts";
import { trackUse } from "#domain/agents/use.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import { AppActivity } from "#src/api/applications/activity.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { getContext, seedUser } from "#test/support/seed.ts";
import { awaitBuild, createWorkspace, seedTemplate } from "#test/support/workspaces.ts";
import { connectAgent } from "../agents/rpc-agent.ts";
import { openInsights, readAll, START, secondsIn } from "./world.ts";

const MINUTE = 60_000;
const APP = { slug: "code", display_name: "Code", url: "http://localhost:8080" };

const WITH_APP: Manifest = {
  provisioner: "echo",
  resources: [{ name: "main", agents: [{ name: "dev", os: "linux", arch: "amd64", apps: [APP] }] }],
};

testInProcess("[IN-1] apps, ports, terminals and client reports mark active minutes", async () => {
  await using world = await openInsights();
  const { server, admin, clock } = world;
  const context = getContext(server);
  const { template_id } = await seedTemplate(server, WITH_APP);
  const { id: workspace_id, owner_id } = await createWorkspace(admin, template_id);
  const agent_id = (await awaitBuild(admin, workspace_id)).latest_build.resources[0]?.agents?.[0]?.id as string;
  const visitor = await seedUser(server);
  const caller = { kind: "user", user_id: visitor.user_id, username: "v" } as never;
  const app = {
    workspace_id,
    agent_id,
    build_id: "build",
    owner_id,
    port: 80,
    tls: false,
    base: { path: "/", query: "" },
    label: "",
    isPublic: false,
  };
  const activity = new AppActivity(context);
  const recordTyping = trackUse(context, workspace_id, {
    reason: "terminal",
    agent_id,
    by: { kind: "user", id: owner_id, name: "o" },
  });
  for (let minute = 0; minute < 5; minute++) {
    // Two uses in a minute count once, even if they are of different kinds.
    for (let i = 0; i < 2; i++) {
      await admin.post(`/api/v2/workspaces/${workspace_id}/usage`, { agent_id, app_name: "vscode" });
      recordTyping();
    }
    if (minute < 2) activity.note({ ...app, isPort: false, slug: "code" }, caller);
    if (minute < 3) activity.note({ ...app, isPort: true, slug: undefined }, caller);
    clock.advance(MINUTE);
  }
  const { activity: users, templates } = await readAll(admin);
  const seconds = Object.fromEntries(users.report.users.map(({ user_id, seconds }) => [user_id, seconds]));
  expect(seconds).toEqual({ [owner_id]: 300, [visitor.user_id]: 180 });
  expect(secondsIn(templates)).toEqual({ vscode: 300, "reconnecting-pty": 300, code: 120 });
  expect(templates.report?.apps_usage.map(({ slug, type }) => `${slug} ${type}`)).toEqual([
    ...["vscode", "jetbrains", "reconnecting-pty", "ssh", "sftp"].map((slug) => `${slug} builtin`),
    "code app",
  ]);
});

testInProcess(
  "[IN-3] an agent's report counts five minutes for the owner, or nothing without connections",
  async () => {
    await using world = await openInsights();
    const { server, admin, clock, seeded } = world;
    const { usage } = getContext(server);
    const report = (ssh: number, sftp: number, latency: number): void =>
      usage.noteReport(seeded.workspace_id, seeded.agent_id, {
        connection_count: ssh + sftp,
        connection_median_latency_ms: latency,
        session_counts: { ssh, sftp },
      });
    report(0, 0, 50);
    expect((await readAll(admin)).activity.report.users).toEqual([]);
    // Three reports in this half hour, then one in the next.
    for (const latency of [10, 40, 21]) {
      clock.advance(5 * MINUTE);
      report(2, 0, latency);
    }
    clock.advance(20 * MINUTE);
    report(1, 1, -1);
    const { activity, latency, templates } = await readAll(admin, RANGE_TO_11);
    expect(activity.report.users.map(({ user_id, seconds }) => [user_id, seconds])).toEqual([[seeded.owner_id, 1200]]);
    expect(secondsIn(templates)).toEqual({ ssh: 1200, sftp: 300 });
    expect(latency.report.users[0]?.latency_ms).toEqual({ p50: 21, p95: 21 });
  },
);
const RANGE_TO_11 = "start_time=2030-01-15T00:00:00Z&end_time=2030-01-16T11:00:00Z";

testInProcess(
  "[IN-3] counts the latency that an agent reports for the owner, as at least one millisecond",
  async () => {
    await using world = await openInsights();
    const { server, admin, clock, seeded } = world;
    await using connection = await connectAgent(server, seeded.agent_token);
    const report = (connectionMedianLatencyMs: number) =>
      connection.agent.updateStats({ stats: { connectionCount: 1n, sessionCountSsh: 1n, connectionMedianLatencyMs } });
    await report(0.2);
    clock.advance(5 * MINUTE);
    const { latency } = await readAll(admin);
    expect(latency.report.users[0]?.latency_ms).toEqual({ p50: 1, p95: 1 });
  },
);

testInProcess("[IN-3] uses the measured latency of terminal users, not the one that the agent reports", async () => {
  await using world = await openInsights();
  const { server, admin, clock, seeded } = world;
  const { workspace_id, agent_id } = seeded;
  const { workspaces, usage, clock: now } = getContext(server);
  const dialer = { roundTrip: (id: string) => (id === agent_id ? 0.4 : undefined) };
  const recordUse = trackUse({ clock: now, workspaces, usage, dialer }, workspace_id, { reason: "terminal", agent_id });
  recordUse();
  clock.advance(MINUTE);
  const { latency } = await readAll(admin);
  expect(latency.report.users[0]?.latency_ms).toEqual({ p50: 1, p95: 1 });
});

testInProcess("[IN-4] does not count anonymous visitors and prebuilt workspaces", async () => {
  await using world = await openInsights();
  const { server, admin, store, seeded } = world;
  const { workspace_id, agent_id, owner_id } = seeded;
  const context = getContext(server);
  const app = {
    workspace_id,
    agent_id,
    build_id: "build",
    owner_id,
    port: 80,
    tls: false,
    base: { path: "/", query: "" },
    label: "",
    isPublic: false,
  };
  new AppActivity(context).note({ ...app, isPort: false, slug: "code" }, undefined);
  await store.commit([updateBy(workspaces, workspaces.id)(workspace_id, { owner_id: PREBUILDS_USER_ID })]);
  const stats = { connection_count: 1, connection_median_latency_ms: 5, session_counts: { ssh: 1 } };
  context.usage.noteReport(workspace_id, agent_id, stats);
  const { activity, latency, daus } = await readAll(admin);
  expect([activity.report.users, latency.report.users]).toEqual([[], []]);
  expect(daus.entries.every(({ amount }) => amount === 0)).toBe(true);
});

testInProcess("[IN-5] reports are identical before and after completed buckets are folded", async () => {
  await using world = await openInsights(START - 6 * 60 * MINUTE);
  const { server, admin, clock, seeded, store } = world;
  const { usage } = getContext(server);
  const stats = { connection_count: 1, connection_median_latency_ms: 30, session_counts: { ssh: 1, vscode: 1 } };
  for (let i = 0; i < 60; i++) {
    clock.advance(6 * MINUTE);
    if (i % 9 !== 0)
      usage.noteReport(seeded.workspace_id, seeded.agent_id, { ...stats, connection_median_latency_ms: i });
  }
  const countRows = async (): Promise<number> => {
    const [row] = await store.scan({ sql: "select count(*) from usage_minutes", params: [], map: ([n]) => Number(n) });
    return row ?? -1;
  };
  await usage.flush();
  const before = await readAll(admin);
  expect(before.activity.report.users[0]?.seconds).toBeGreaterThan(10_000);
  await usage.fold();
  const remainingRows = await countRows();
  expect(remainingRows).toBeGreaterThan(0);
  expect(await readAll(admin)).toEqual(before);
  await usage.fold();
  clock.advance(90 * MINUTE);
  await usage.fold();
  expect(await countRows()).toBe(0);
  expect(await readAll(admin)).toEqual(before);
});

testInProcess(
  "[IN-2] retries a failed write and counts it once; writes everything before the server stops",
  async () => {
    await using world = await openInsights();
    const { admin, store, seeded } = world;
    let remainingFailures = 2;
    const failingStore: Store = Object.create(store, {
      commit: {
        value: async (batch: Parameters<Store["commit"]>[0]) => {
          // The second failure occurs after the first part is written.
          if (remainingFailures > 0 && (remainingFailures === 2 || batch[0]?.sql.includes("usage_latencies"))) {
            remainingFailures -= 1;
            throw new Error("no space");
          }
          return store.commit(batch);
        },
      },
      scan: { value: (query: Parameters<Store["scan"]>[0]) => store.scan(query) },
    });
    const collector = new UsageCollector(failingStore, () => {});
    const { workspace_id, agent_id } = seeded;
    collector.note({ workspace_id, agent_id, app: "ssh", at: START, minutes: 3 });
    collector.note({ workspace_id: uuid(), agent_id, app: "ssh", at: START });
    collector.noteLatency(workspace_id, 12, START);
    await collector.flush();
    expect((await readAll(admin)).activity.report.users).toEqual([]);
    await collector.flush();
    await collector.flush();
    expect(remainingFailures).toBe(0);
    const { activity, latency } = await readAll(admin);
    expect(activity.report.users.map(({ seconds }) => seconds)).toEqual([180]);
    expect(latency.report.users[0]?.latency_ms.p50).toBe(12);
    const { usage } = getContext(world.server);
    usage.note({ workspace_id, agent_id, app: "ssh" });
    await usage.stop();
    const [row] = await store.scan({ sql: "select count(*) from usage_minutes", params: [], map: ([n]) => Number(n) });
    expect(row).toBeGreaterThan(0);
  },
);

test("[IN-2] limits the recorded usage in memory, and writes it when the limit is reached", () => {
  let writeCount = 0;
  const collector = new UsageCollector({} as Store, () => {
    writeCount += 1;
  });
  for (let i = 0; i < 50_000; i++) collector.note({ workspace_id: String(i), at: START });
  expect(writeCount).toBe(1);
});
