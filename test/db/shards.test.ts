// The migration that assigns chats, versions and workspaces to shards, on a database of the previous version.
import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { join } from "node:path";
import { SQL } from "bun";
import { uuid } from "#base/ids.ts";
import { SHARD_COUNT, toShard } from "#base/shards.ts";
import { migrate } from "#db/engine/migrate.ts";
import type { Migration } from "#db/engine/migration.ts";
import { MIGRATIONS } from "#db/engine/migrations.ts";
import { migratePostgres } from "#db/pg/migrate.ts";
import { PG_MIGRATIONS } from "#db/pg/migrations.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createDatabase, type TestDatabase } from "#test/support/postgres.ts";
import { temporaryDirectory } from "./deployments.ts";

const listMigrationsBefore = (steps: readonly Migration[], name: string): readonly Migration[] =>
  steps.slice(
    0,
    steps.findIndex((step) => step.name === name),
  );

const USER_IDS = Array.from({ length: 40 }, uuid);
const TEMPLATE_ID = uuid();
const VERSION_WITHOUT_TEMPLATE_ID = uuid();

/** Rows of the previous version, as SQL for both databases. */
const WRITES = [
  "insert into organizations (id, name, display_name, description, icon, is_default, created_at, updated_at) values ('o', 'o', '', '', '', 1, 1, 1)",
  ...[...USER_IDS, PREBUILDS_USER_ID].map(
    (id) => `insert into users (id, username, email, login_type, status, created_at, updated_at, last_seen_at)
      values ('${id}', '${id}', '${id}', 'none', 'active', 1, 1, 1)`,
  ),
  `insert into templates (id, organization_id, name, provisioner, active_version_id, created_by, created_at, updated_at)
    values ('${TEMPLATE_ID}', 'o', 't', 'echo', 'v', '${USER_IDS[0]}', 1, 1)`,
  ...[
    [VERSION_WITHOUT_TEMPLATE_ID, "null"],
    ["v", `'${TEMPLATE_ID}'`],
  ].map(
    ([
      id,
      template,
    ]) => `insert into template_versions (id, template_id, organization_id, name, job_id, file_id, created_by, created_at, updated_at)
      values ('${id}', ${template}, 'o', '${id}', 'j', 'f', '${USER_IDS[0]}', 1, 1)`,
  ),
  ...[...USER_IDS, PREBUILDS_USER_ID].map(
    (
      id,
    ) => `insert into workspaces (id, owner_id, organization_id, template_id, name, created_at, updated_at, last_used_at, latest_build_id)
      values ('${id}', '${id}', 'o', '${TEMPLATE_ID}', 'dev', 1, 1, 1, 'b')`,
  ),
  ...USER_IDS.map(
    (
      id,
    ) => `insert into chats (id, organization_id, owner_id, last_model_config_id, title, client_type, created_at, updated_at, status, snapshot_version, history_version)
      values ('${id}', 'o', '${id}', 'm', '', 'api', 1, 1, 'waiting', 1, 1)`,
  ),
];

const READS = ["workspaces", "chats", "template_versions"].map((table) => `select id, part from ${table} order by id`);
type Row = [id: string, part: number];
const sortRows = (rows: Row[]): Row[] => rows.sort(([a], [b]) => (a < b ? -1 : 1));

const EXPECTED: readonly Row[][] = [
  sortRows([...USER_IDS.map((id): Row => [id, toShard(id)]), [PREBUILDS_USER_ID, toShard(TEMPLATE_ID)]]),
  sortRows(USER_IDS.map((id): Row => [id, toShard(id)])),
  sortRows([
    [VERSION_WITHOUT_TEMPLATE_ID, toShard(VERSION_WITHOUT_TEMPLATE_ID)],
    ["v", toShard(TEMPLATE_ID)],
  ]),
];

const databases: TestDatabase[] = [];
afterAll(() => Promise.all(databases.map((database) => database.remove())));

test("[CP-1] IDs are spread over all shards", () => {
  const counts = new Array<number>(SHARD_COUNT).fill(0);
  for (let i = 0; i < 100 * SHARD_COUNT; i++) {
    const shard = toShard(uuid());
    counts[shard] = (counts[shard] ?? 0) + 1;
  }
  // Each shard is expected to have a hundred IDs, within six standard deviations.
  expect(Math.min(...counts)).toBeGreaterThan(40);
  expect(Math.max(...counts)).toBeLessThan(160);
  expect(toShard("c42fdf75-3097-471c-8c33-fb52454d81c0")).toBe(194);
});

test("[CP-2] existing objects get their shard on SQLite", () => {
  using temp = temporaryDirectory();
  const db = new Database(join(temp.path, "slipway.db"), { create: true });
  migrate(db, { directory: temp.path, now: 1, migrations: listMigrationsBefore(MIGRATIONS, "0026_parts") });
  for (const write of WRITES) db.run(write);
  migrate(db, { directory: temp.path, now: 2 });
  expect(READS.map((read) => db.query(read).values() as Row[])).toEqual(EXPECTED as Row[][]);
  db.close();
});

testNeeding([needs.postgres], "[CP-2] existing objects get their shard on PostgreSQL", async () => {
  const created = await createDatabase({ empty: true });
  databases.push(created);
  await using sql = new SQL(created.url, { max: 1 });
  using connection = await sql.reserve();
  await migratePostgres(connection, { now: 1, migrations: listMigrationsBefore(PG_MIGRATIONS, "0003_parts") });
  for (const write of WRITES) await connection.unsafe(write);
  await migratePostgres(connection, { now: 2 });
  const stored: Row[][] = [];
  for (const read of READS) {
    const rows: [string, string][] = await connection.unsafe(read).values();
    stored.push(sortRows(rows.map(([id, part]) => [id, Number(part)])));
  }
  expect(stored).toEqual(EXPECTED as Row[][]);
});
