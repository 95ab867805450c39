// The server's health report for administrators.
import { expect, test } from "bun:test";
import type { HealthReport } from "#schema/deployment/health.ts";
import { Client } from "#src/client.ts";
import { usesActiveNodes } from "#test/support/cluster/active-nodes.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { usesPostgres } from "#test/support/postgres-server.ts";
import { seedUser } from "#test/support/seed.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { fetchStatus } from "./users/people.ts";

/** The warning that every test server has. PostgreSQL makes the backups of a cluster. */
const EXPECTED_WARNING = usesActiveNodes ? "standby database" : "backups";

test("[DP-5] reports what `slipway doctor` finds, and whether the server reaches itself", async () => {
  const clock = new ManualClock();
  await using server = await startTestServer({ clock });
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const first = await admin.get<HealthReport>("/api/v2/debug/health");
  expect(first.access_url).toMatchObject({ reachable: true, status_code: 200, healthz_response: "OK", severity: "ok" });
  expect(first.websocket).toMatchObject({ code: 101, severity: "ok" });
  expect(first.database).toMatchObject({ reachable: true });
  expect(first.findings.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["disk", "database", EXPECTED_WARNING]),
  );
  const serverFinding = first.findings.find(({ name }) => name === "server");
  // A server on PostgreSQL locks no directory; for a cluster, the nodes are checked.
  if (!usesActiveNodes)
    expect(serverFinding?.detail).toBe(usesPostgres ? "does not run" : "runs on this data directory");

  clock.advance(30_000);
  expect((await admin.get<HealthReport>("/api/v2/debug/health")).time).toBe(first.time);
  clock.advance(30_001);
  expect((await admin.get<HealthReport>("/api/v2/debug/health")).time).not.toBe(first.time);
  clock.advance(5_000);
  const forced = await admin.get<HealthReport>("/api/v2/debug/health?force=true");
  expect(Date.parse(forced.time)).toBe(clock.now());
});

test("[DP-5] reports an error when the access URL leads to another server", async () => {
  using otherServer = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("no", { status: 502 }) });
  await using server = await startTestServer({ env: { SLIPWAY_ACCESS_URL: `http://127.0.0.1:${otherServer.port}` } });
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const report = await admin.get<HealthReport>("/api/v2/debug/health");
  expect(report).toMatchObject({ healthy: false, severity: "error" });
  expect(report.access_url).toMatchObject({ severity: "error", status_code: 502 });
  expect(report.websocket).toMatchObject({ severity: "error", code: 0 });
});

test("[DP-6] keeps a dismissed warning in the report without counting it", async () => {
  await using server = await startTestServer();
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const before = await admin.get<HealthReport>("/api/v2/debug/health");
  const warnings = before.findings.filter(({ severity }) => severity !== "ok").map(({ name }) => name);
  expect(warnings).toContain(EXPECTED_WARNING);
  expect(before.severity).not.toBe("ok");
  const settings = { dismissed_healthchecks: [...warnings, "Database"] };
  await admin.put("/api/v2/debug/health/settings", settings);
  expect(await admin.get<object>("/api/v2/debug/health/settings")).toEqual({
    dismissed_healthchecks: [...new Set(settings.dismissed_healthchecks)].sort(),
  });
  const after = await admin.get<HealthReport>("/api/v2/debug/health");
  expect(after).toMatchObject({ healthy: true, severity: "ok", database: { dismissed: true } });
  expect(after.findings.find(({ name }) => name === EXPECTED_WARNING)).toMatchObject({
    severity: "warning",
    dismissed: true,
  });
});

test("[DP-7] owners and auditors see the peers in the private network", async () => {
  await using server = await startTestServer();
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  expect(await admin.get<object>("/api/v2/debug/coordinator")).toMatchObject({ peers: [], counts: { peers: 0 } });
  expect(await admin.get<object>("/api/v2/debug/tailnet")).toMatchObject({ relay: { keys: 0 } });
  const member = new Client(server.url, (await seedUser(server)).token);
  for (const path of ["/debug/health", "/debug/coordinator", "/debug/tailnet", "/debug/health/settings"]) {
    expect([path, await fetchStatus(member, "GET", path)]).toEqual([path, 403]);
  }
});
