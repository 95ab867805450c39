// Where the steps of PostgreSQL lead: to the tables of db/schema, from an empty database, from that of a release, and from one in between.
import { afterAll, expect, test } from "bun:test";
import { SQL } from "bun";
import type { Migration } from "#db/engine/migration.ts";
import { migratePostgres } from "#db/pg/migrate.ts";
import { PG_MIGRATIONS } from "#db/pg/migrations.ts";
import { tablesMigration } from "#db/pg/print-migration.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createDatabase, type TestDatabase } from "#test/support/postgres.ts";

/** Steps that 0.2.0 had. */
const RELEASED = 4;
const SHA256_OF_RELEASED = "c831949a15ef3de63eeade3d8050ec240a1e48b420020f0f920432908bba1367";

const databases: TestDatabase[] = [];
afterAll(() => Promise.all(databases.map((one) => one.remove())));

/** A database on which these steps were carried out, one list after the other, and what its catalogue says then, without an order. */
const after = async (...lists: (readonly Migration[])[]): Promise<string[]> => {
  const made = await createDatabase({ empty: true });
  databases.push(made);
  await using sql = new SQL(made.url, { max: 1 });
  using connection = await sql.reserve();
  for (const migrations of lists) await migratePostgres(connection, { now: 0, migrations });
  const rows: { line: string }[] = await connection.unsafe(`
    select format('column %s.%s %s %s %s %s', table_name, column_name, data_type, is_nullable, column_default, is_identity) as line
      from information_schema.columns where table_schema = 'public' and table_name <> 'migrations'
    union all select format('constraint %s %s', conrelid::regclass, pg_get_constraintdef(oid)) from pg_constraint where connamespace = 'public'::regnamespace
    union all select indexdef from pg_indexes where schemaname = 'public'
    union all select pg_get_triggerdef(oid) from pg_trigger where not tgisinternal
    union all select pg_get_functiondef(oid) from pg_proc where pronamespace = 'public'::regnamespace and prokind = 'f'`);
  return rows.map(({ line }) => line).sort();
};

const printed: Migration = { name: "0000_tables", sql: tablesMigration() };
const released = PG_MIGRATIONS.slice(0, RELEASED);
/** What versions between 0.2.0 and the next release made: the first step written anew. */
const between = [printed, ...released.slice(1)];
/** What later steps make that is in no schema, since only a cluster has it. */
const OF_CLUSTERS = [
  "0004_parts_of_nodes",
  "0005_versions",
  "0006_bucket_blobs",
  "0007_workspace_versions",
  "0008_told",
];
const byHand = PG_MIGRATIONS.filter(({ name }) => OF_CLUSTERS.includes(name));

testNeeding(
  [needs.postgres],
  "[PQ-3] all steps lead to the tables of db/schema: from nothing, from a release and from between two",
  async () => {
    const wanted = await after([...between, ...byHand]);
    expect(wanted.length).toBeGreaterThan(1_000);
    expect(await after(PG_MIGRATIONS)).toEqual(wanted);
    expect(await after(released, PG_MIGRATIONS)).toEqual(wanted);
    expect(await after(between, PG_MIGRATIONS)).toEqual(wanted);
    expect(await after(released)).not.toEqual(wanted);
  },
);

test("[PQ-3] steps that a release has are as they were", () => {
  const text = released.map(({ name, sql }) => `${name}\n${sql}`).join("\n");
  expect(new Bun.CryptoHasher("sha256").update(text).digest("hex")).toBe(SHA256_OF_RELEASED);
});
