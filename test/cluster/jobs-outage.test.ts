// A short PostgreSQL outage during builds and imports: none fails because of it, and none runs twice. Also a PostgreSQL that rejects a
// node.
import { expect } from "bun:test";
import { join } from "node:path";
import { SQL } from "bun";
import { UnsafeDatabaseError } from "#db/engine/unsafe.ts";
import { checkAccess } from "#db/pg/inspect.ts";
import type { TemplateVersion } from "#schema/templates/template-version.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Client } from "#src/client.ts";
import { startSingle } from "#test/support/cluster/postgres-pair.ts";
import { startCluster } from "#test/support/cluster.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { createDatabase } from "#test/support/postgres.ts";
import { toProgramCommand } from "#test/support/program.ts";
import { ADMIN, tempDirectory } from "#test/support/server.ts";
import { makeTemplate, uniqueText, uploadFiles } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";

/** Seconds of database downtime, one outage after the other. In manual runs: 2,5,30,90, each 20 times. */
const OUTAGES = (process.env.SLIPWAY_TEST_OUTAGES ?? "2,5").split(",").map(Number);
const ROUNDS = Number(process.env.SLIPWAY_TEST_OUTAGE_ROUNDS ?? 1);
const MAX_PARALLEL = 6;
/** A build that takes a while, because its log is long. */
const SLOW_BUILD = JSON.stringify({
  provisioner: "echo",
  echo: { logs: Array.from({ length: 3_000 }, (_, i) => `line ${i} of a log`) },
  resources: [{ name: "main", agents: [{ name: "main" }] }],
});
const makeSlowTemplate = (): string => `${uniqueText()}${SLOW_BUILD}`;
const LONG_WAIT = { timeoutMs: 240_000 };

testNeeding(
  [needs.postgres, needs.root],
  `[CP-73] a database outage of ${OUTAGES.join(", ")} s makes no build or import fail`,
  async () => {
    await using single = await startSingle();
    const { server } = single;
    const database = { name: "", url: server.url(), cutConnections: async () => {}, remove: async () => {} };
    await using cluster = await startCluster({ database });
    const node = await cluster.start(1);
    const { token } = await new Client(node.url).signIn(ADMIN.email, ADMIN.password);
    const client = new Client(node.url, token);
    const { id: template_id } = await makeTemplate(client, makeSlowTemplate());
    for (const seconds of OUTAGES.flatMap((seconds) => Array<number>(ROUNDS).fill(seconds))) {
      const file_id = await uploadFiles(client, { "template.yaml": makeSlowTemplate() });
      const workspaces: Workspace[] = [];
      for (let i = 0; i < MAX_PARALLEL; i++) {
        const name = `w-${crypto.randomUUID().slice(0, 8)}`;
        workspaces.push(await client.post<Workspace>("/api/v2/users/me/workspaces", { template_id, name }));
      }
      const version = await client.post<TemplateVersion>("/api/v2/organizations/default/templateversions", {
        storage_method: "file",
        file_id,
      });
      server.kill();
      const stoppedAt = performance.now();
      const response = await client.fetch("GET", "/api/v2/users/me/workspaces").catch(() => undefined);
      if (response?.status === 503)
        expect(((await response.json()) as { message: string }).message).toContain("database");
      await until(() => performance.now() - stoppedAt > 1000 * seconds, LONG_WAIT);
      await server.start();
      const isOver = async (): Promise<boolean> => {
        const current = await Promise.all(
          workspaces.map(({ id }) => client.get<Workspace>(`/api/v2/workspaces/${id}`)),
        );
        return current.every(({ latest_build }) => !["pending", "running"].includes(latest_build.job.status));
      };
      await until(() => isOver().catch(() => false), { ...LONG_WAIT, what: "the builds to end" });
      const after = await Promise.all(workspaces.map(({ id }) => client.get<Workspace>(`/api/v2/workspaces/${id}`)));
      expect(
        after.map(({ latest_build: { job, build_number } }) => [job.status, job.error ?? "", build_number]),
      ).toEqual(workspaces.map(() => ["succeeded", "", 1]));
      const imported = await until(async () => {
        const loaded = await client.get<TemplateVersion>(`/api/v2/templateversions/${version.id}`);
        return !["pending", "running"].includes(loaded.job.status) && loaded;
      }, LONG_WAIT);
      expect([imported.job.status, imported.job.error ?? ""]).toEqual(["succeeded", ""]);
    }
  },
  scaleTimeout(60_000 + 240_000 * OUTAGES.length * ROUNDS),
);

testNeeding(
  [needs.postgres],
  "[CL-71] a start with a role that PostgreSQL does not have fails, and names database_url",
  async () => {
    const database = await createDatabase();
    await using _removed = { [Symbol.asyncDispose]: () => database.remove() };
    using temp = tempDirectory();
    const url = new URL(database.url);
    url.username = "no_such_role";
    const child = Bun.spawn([...toProgramCommand(), "serve", "--data-dir", temp.path, "--address", "127.0.0.1:0"], {
      env: {
        PATH: process.env.PATH,
        HOME: temp.path,
        SLIPWAY_DATABASE_URL: url.href,
        SLIPWAY_ENCRYPTION_KEY: "5".repeat(64),
      },
      stdio: ["ignore", "ignore", "pipe"],
    });
    const errors = await child.stderr.text();
    expect(await child.exited).toBe(1);
    expect(errors).toMatch(/slipway serve: database_url: PostgreSQL at .* refuses the connection: .*no_such_role/);
  },
);

testNeeding(
  [needs.postgres, needs.root],
  "[CL-71] a start reports a wrong password, a missing database or a role without login, and waits for an unreachable server",
  async () => {
    await using single = await startSingle();
    const { server } = single;
    const hba = join(server.data, "pg_hba.conf");
    await Bun.write(hba, `host all asker all scram-sha-256\n${await Bun.file(hba).text()}`);
    const sql = new SQL(server.url(), { max: 1 });
    await sql.unsafe("create role asker login password 'right'");
    await sql.unsafe("create role closed");
    await sql.unsafe("select pg_reload_conf()");
    await sql.close();
    const getFailureReason = async (change: Partial<URL>): Promise<string> => {
      const url = Object.assign(new URL(server.url()), change);
      const error = await checkAccess(url.href).then(
        () => undefined,
        (reason: unknown) => reason,
      );
      if (error === undefined) return "";
      expect(error).toBeInstanceOf(UnsafeDatabaseError);
      return String(error);
    };
    await until(async () => (await getFailureReason({ username: "asker", password: "mistyped" })) !== "");
    const message = await getFailureReason({ username: "asker", password: "mistyped" });
    expect(message).toContain('password authentication failed for user "asker"');
    expect(message).not.toContain("mistyped");
    expect(await getFailureReason({ pathname: "/elsewhere" })).toContain('database "elsewhere" does not exist');
    expect(await getFailureReason({ username: "closed" })).toContain('role "closed" is not permitted to log in');
    expect(await getFailureReason({ username: "asker", password: "right" })).toBe("");
    server.kill();
    expect(await getFailureReason({ username: "asker", password: "mistyped" })).toBe("");
  },
);
