// The doctor's report about a cluster, on a real PostgreSQL.
import { expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { loadConfig } from "#base/config.ts";
import { Metrics } from "#base/metrics.ts";
import { UsageError } from "#base/usage-error.ts";
import { ClusterNode } from "#db/pg/node.ts";
import { ShardsMember } from "#db/pg/shards/member.ts";
import { examine } from "#domain/health/checks.ts";
import { registerCluster } from "#src/api/metrics/cluster.ts";
import { runVerb } from "#test/cli/run-verb.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createDatabase } from "#test/support/postgres.ts";
import { tempDirectory } from "#test/support/server.ts";

const KEY = "5".repeat(64);

const loadSettings = (env: Record<string, string>) => loadConfig({ argv: [], env, readFile: () => "" }).config;

testNeeding(
  [needs.postgres],
  "[CL-12] doctor, metrics and support bundles cover the database, its schema, the nodes and the standby",
  async () => {
    const database = await createDatabase({ empty: true });
    using temp = tempDirectory();
    try {
      const config = loadSettings({
        SLIPWAY_DATA_DIR: temp.path,
        SLIPWAY_DATABASE_URL: database.url,
        SLIPWAY_ENCRYPTION_KEY: KEY,
        SLIPWAY_DOCKER_HOST: "unix:///nowhere/docker.sock",
      });
      const examineCluster = async (): Promise<Record<string, string>> =>
        Object.fromEntries(
          (await examine(config, systemClock, true, {})).map(({ name, status, detail }) => [
            name,
            `${status}: ${detail}`,
          ]),
        );
      const before = await examineCluster();
      expect(before.database).toMatch(/^ok: PostgreSQL \d+/);
      expect(before.schema).toMatch(/^warn: \d+ pending migrations run at the next start/);
      expect(before["active node"]).toBeUndefined();
      const node = await ClusterNode.join({
        url: database.url,
        id: "10.0.0.1:7080",
        version: "v9.9.9",
        lease_ms: 30_000,
        clock: systemClock,
        fatal: () => {},
      });
      try {
        await node.whenActive();
        const after = await examineCluster();
        expect(after.schema).toMatch(/^ok: /);
        expect(after["active node"]).toBe("ok: 10.0.0.1:7080, v9.9.9");
        expect(after["spare nodes"]).toBe("warn: 0 stand by");
        expect(after["standby database"]).toStartWith("warn: none is required");
        expect(after["encryption key"]).toBe("ok: from the settings");
        const metrics = new Metrics(systemClock);
        registerCluster(metrics, node);
        const metricsText = await metrics.text();
        expect(metricsText).toContain('slipway_node_active{node="10.0.0.1:7080"} 1\n');
        expect(metricsText).toContain("slipway_database_standby_required 0\n");
        expect(metricsText).toContain("slipway_database_standbys 0\n");
        const file = `${temp.path}/support.tar`;
        const key = ["--encryption-key", KEY, "--data-dir", temp.path];
        expect((await runVerb(["support-bundle", file, "--database-url", database.url, ...key])).code).toBe(0);
        const bundle = await new Bun.Archive(await Bun.file(file).bytes()).files();
        expect(JSON.parse((await bundle.get("database.json")?.text()) ?? "{}")).toMatchObject({
          server: expect.stringMatching(/^\d+/),
          view: { active: { id: "10.0.0.1:7080" }, standby: { required: false } },
        });
        // Checks of files in the data directory are skipped.
        expect(after.backups).toBeUndefined();
      } finally {
        await node.leaveCluster();
      }
    } finally {
      await database.remove();
    }
  },
);

testNeeding([needs.postgres], "[CL-12] if every node is active, doctor and metrics cover their shards", async () => {
  const database = await createDatabase();
  const member = await ShardsMember.join({
    url: database.url,
    id: "10.0.0.1:7080",
    version: "v9.9.9",
    lease_ms: 30_000,
    clock: systemClock,
    fatal: () => {},
  });
  try {
    const config = loadSettings({
      SLIPWAY_DATABASE_URL: database.url,
      SLIPWAY_ENCRYPTION_KEY: KEY,
      SLIPWAY_DOCKER_HOST: "unix:///nowhere/docker.sock",
    });
    const examineNodes = async () =>
      (await examine(config, systemClock, true, {})).find(({ name }) => name === "active nodes");
    expect(await examineNodes()).toMatchObject({ status: "warn", detail: "10.0.0.1:7080, v9.9.9, 256 of 256 parts" });
    const metrics = new Metrics(systemClock);
    registerCluster(metrics, member);
    const metricsText = await metrics.text();
    expect(metricsText).toContain('slipway_node_active{node="10.0.0.1:7080"} 1\n');
    expect(metricsText).toContain("slipway_node_parts 256\n");
    expect(member.state).toMatchObject({ node: "active", lease: "held", database: "answers", parts: 256 });
  } finally {
    await member.leaveCluster();
    await database.remove();
  }
});

test("[CL-12] doctor reports that no database answers, without revealing its password", async () => {
  using temp = tempDirectory();
  const config = loadSettings({
    SLIPWAY_DATA_DIR: temp.path,
    SLIPWAY_DATABASE_URL: "postgres://slipway:very-secret@127.0.0.1:1/slipway",
    SLIPWAY_DOCKER_HOST: "unix:///nowhere/docker.sock",
  });
  const findings = await examine(config, systemClock, true, {});
  expect(findings.find(({ name }) => name === "database")).toMatchObject({
    status: "wrong",
    detail: "no primary of the database answers",
  });
  expect(JSON.stringify(findings)).not.toContain("very-secret");
});

test("[CL-12] backups of a data directory are refused with a PostgreSQL database", () => {
  const settings = { SLIPWAY_DATABASE_URL: "postgres://a:b@c/d", SLIPWAY_BACKUP_INTERVAL: "1h" };
  expect(() => loadSettings(settings)).toThrow(UsageError);
  expect(() => loadSettings(settings)).toThrow("remove it and back up PostgreSQL");
});
