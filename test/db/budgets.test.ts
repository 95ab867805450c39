// The migration that deletes the budgets of deleted organizations and groups, on a database of the previous version.
import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { join } from "node:path";
import { SQL } from "bun";
import { migrate } from "#db/engine/migrate.ts";
import type { Migration } from "#db/engine/migration.ts";
import { MIGRATIONS } from "#db/engine/migrations.ts";
import { migratePostgres } from "#db/pg/migrate.ts";
import { PG_MIGRATIONS } from "#db/pg/migrations.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createDatabase, type TestDatabase } from "#test/support/postgres.ts";
import { temporaryDirectory } from "./deployments.ts";

const listEarlier = (steps: readonly Migration[]): readonly Migration[] =>
  steps.slice(
    0,
    steps.findIndex(({ name }) => name === "0055_budgets_of_deleted"),
  );

const insertOrganization = (id: string, deleted: number): string =>
  `insert into organizations (id, name, display_name, description, icon, is_default, deleted, created_at, updated_at)
    values ('${id}', '${id}', '', '', '', 0, ${deleted}, 1, 1)`;
const insertTemplate = (id: string, organization_id: string): string =>
  `insert into templates (id, organization_id, name, provisioner, active_version_id, created_by, deleted, created_at, updated_at)
    values ('${id}', '${organization_id}', '${id}', 'echo', 'v', 'u', 1, 1, 1)`;
const insertBudget = (id: string, scope: string, scope_id: string): string[] => [
  `insert into budgets (id, scope, scope_id, period, unit, amount, created_at, updated_at)
    values ('${id}', '${scope}', '${scope_id}', 'month', 'usd', 1, 1, 1)`,
  `insert into budget_periods (budget_id, begins_at, ends_at, unit, spent) values ('${id}', 1, 2, 'usd', 1)`,
];

/** Rows of the previous version, as SQL for both databases. */
const WRITES = [
  `insert into users (id, username, email, login_type, status, created_at, updated_at, last_seen_at)
    values ('u', 'u', 'u', 'none', 'active', 1, 1, 1)`,
  insertOrganization("lives", 0),
  insertOrganization("ended", 1),
  "insert into groups (id, organization_id, name, created_at, updated_at) values ('crew', 'lives', 'crew', 1, 1)",
  insertTemplate("kept", "lives"),
  insertTemplate("lost", "ended"),
  ...insertBudget("a1", "organization", "lives"),
  ...insertBudget("a2", "group", "crew"),
  ...insertBudget("a3", "template", "kept"),
  ...insertBudget("a4", "everyone", ""),
  ...insertBudget("a5", "user", "u"),
  ...insertBudget("a6", "chat", "c"),
  ...insertBudget("b1", "organization", "ended"),
  ...insertBudget("b2", "group", "of ended"),
  ...insertBudget("b3", "template", "lost"),
  "insert into budget_periods (budget_id, begins_at, ends_at, unit, spent) values ('person:u', 1, 2, 'usd', 1)",
];
const KEPT_IDS = ["a1", "a2", "a3", "a4", "a5", "a6"];
const READS = ["select id from budgets order by id", "select budget_id from budget_periods order by budget_id"];
const EXPECTED = [KEPT_IDS, [...KEPT_IDS, "person:u"]];

const databases: TestDatabase[] = [];
afterAll(() => Promise.all(databases.map((database) => database.remove())));

test("[ID-35] budgets of deleted organizations are deleted on SQLite", () => {
  using temp = temporaryDirectory();
  const db = new Database(join(temp.path, "slipway.db"), { create: true });
  migrate(db, { directory: temp.path, now: 1, migrations: listEarlier(MIGRATIONS) });
  for (const write of WRITES) db.run(write);
  migrate(db, { directory: temp.path, now: 2 });
  expect(READS.map((read) => db.query(read).values().flat() as string[])).toEqual(EXPECTED);
  db.close();
});

testNeeding([needs.postgres], "[ID-35] budgets of deleted organizations are deleted on PostgreSQL", async () => {
  const created = await createDatabase({ empty: true });
  databases.push(created);
  await using sql = new SQL(created.url, { max: 1 });
  using connection = await sql.reserve();
  await migratePostgres(connection, { now: 1, migrations: listEarlier(PG_MIGRATIONS) });
  for (const write of WRITES) await connection.unsafe(write);
  await migratePostgres(connection, { now: 2 });
  const remaining: string[][] = [];
  for (const read of READS) remaining.push((await connection.unsafe(read).values()).flat() as string[]);
  expect(remaining).toEqual(EXPECTED);
});
