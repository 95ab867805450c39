// PostgreSQL's migrations: they create the tables of db/schema, from an empty database and from a database of release 0.2.0.
import { afterAll, expect, test } from "bun:test";
import { SQL } from "bun";
import { configureLogging, resetLogging } from "#base/log.ts";
import type { Migration } from "#db/engine/migration.ts";
import { migratePostgres } from "#db/pg/migrate.ts";
import { PG_MIGRATIONS } from "#db/pg/migrations.ts";
import { formatTablesMigration } from "#db/pg/print-migration.ts";
import { listTableConfigs } from "#db/pg/tables.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createDatabase, type TestDatabase } from "#test/support/postgres.ts";
import { ASKED_BY, CHATS_WITH_QUESTIONS } from "../chats-with-questions.ts";

const RELEASED_SHA256 = "865901434a4ecc7f315475214c542e0b02233a263bfd5a3e229e43643bae9503";

const databases: TestDatabase[] = [];
afterAll(() => Promise.all(databases.map((database) => database.remove())));

const TABLES = listTableConfigs()
  .map(({ name }) => `'${name}'`)
  .join(", ");

/**
 * Applies these lists of migrations in order, and describes the tables of db/schema from the database's catalog. Omits handwritten parts
 * (the search index, triggers on users, cluster tables), which db/schema does not contain.
 */
const describeSchemaAfter = async (...lists: (readonly Migration[])[]): Promise<string[]> => {
  const created = await createDatabase({ empty: true });
  databases.push(created);
  await using sql = new SQL(created.url, { max: 1 });
  using connection = await sql.reserve();
  for (const migrations of lists) await migratePostgres(connection, { now: 0, migrations });
  const rows: { line: string }[] = await connection.unsafe(`
    select format('column %s.%s %s %s %s %s', table_name, column_name, data_type, is_nullable, column_default, is_identity) as line
      from information_schema.columns where table_schema = 'public' and table_name in (${TABLES})
    union all select format('constraint %s %s', conrelid::regclass, pg_get_constraintdef(oid)) from pg_constraint where conrelid::regclass::text in (${TABLES})
    union all select indexdef from pg_indexes where schemaname = 'public' and tablename in (${TABLES})
    union all select pg_get_triggerdef(oid) from pg_trigger where not tgisinternal and tgname like 'number!_%' escape '!'
    union all select pg_get_functiondef(oid) from pg_proc where pronamespace = 'public'::regnamespace and proname like 'number!_%' escape '!'`);
  return rows.map(({ line }) => line).sort();
};

const generated: Migration = { name: "tables", sql: formatTablesMigration(), version: 1 };
const [released] = PG_MIGRATIONS as [Migration, ...Migration[]];

testNeeding(
  [needs.postgres],
  "[PQ-3] all steps end with the tables of db/schema, from an empty database and from 0.2.0",
  async () => {
    const expected = await describeSchemaAfter([generated]);
    expect(expected.length).toBeGreaterThan(1_000);
    expect(await describeSchemaAfter(PG_MIGRATIONS)).toEqual(expected);
    const steps: string[] = [];
    configureLogging({ level: "info", format: "json", write: (line) => void steps.push(JSON.parse(line).step) });
    using _quiet = { [Symbol.dispose]: resetLogging };
    expect(await describeSchemaAfter([released], PG_MIGRATIONS)).toEqual(expected);
    // The log reports no upgrade for a new database.
    expect(steps).toEqual(PG_MIGRATIONS.slice(1).map(({ name }) => name));
    expect(await describeSchemaAfter([released])).not.toEqual(expected);
  },
);

testNeeding(
  [needs.postgres],
  "[ST-27] a PostgreSQL database older than 0.2.0 is refused with the upgrade path",
  async () => {
    const older = { name: "0000_tables", sql: "create table settings (key text primary key)", version: 2 };
    expect(describeSchemaAfter([older], PG_MIGRATIONS)).rejects.toThrow("older than 0.2.0");
  },
);

test("[PQ-3] the recorded tables of 0.2.0 are unchanged", () => {
  expect(new Bun.CryptoHasher("sha256").update(released.sql).digest("hex")).toBe(RELEASED_SHA256);
});

testNeeding([needs.postgres], "[PQ-3] waiting chats of 0.2.0 keep their question", async () => {
  const created = await createDatabase({ empty: true });
  databases.push(created);
  await using sql = new SQL(created.url, { max: 1 });
  using connection = await sql.reserve();
  await migratePostgres(connection, { now: 0, migrations: [released] });
  for (const insert of CHATS_WITH_QUESTIONS) await connection.unsafe(insert);
  await migratePostgres(connection, { now: 0, migrations: PG_MIGRATIONS });
  const rows: { asked_by: string | null }[] = await connection.unsafe("select asked_by from chats order by key");
  expect(rows.map(({ asked_by }) => asked_by)).toEqual([...ASKED_BY]);
});
