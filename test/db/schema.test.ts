// db/schema and db/migrations say the same: what Drizzle would create now is what the steps have created.
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { generateSQLiteDrizzleJson, generateSQLiteMigration } from "drizzle-kit/api";
import { getTableName, is } from "drizzle-orm";
import { SQLiteTable } from "drizzle-orm/sqlite-core";
import { migrate } from "#db/engine/migrate.ts";
import { MIGRATIONS } from "#db/engine/migrations.ts";
import { insertInto } from "#db/engine/sql.ts";
import * as schema from "#db/schema/index.ts";
import { temporaryDirectory } from "./deployments.ts";

const tables = Object.values(schema).flatMap((one) => (is(one, SQLiteTable) ? [one] : []));

/** Virtual tables and what they keep: made by db/engine/search.sql, which Drizzle does not know. */
const isByHand = (name: unknown): boolean => /^(message|title)_search(_|$)/.test(String(name));

/** Columns, keys and indexes of each table. A column's place does not count: `alter table` can only add at the end. */
const shapeOf = (db: Database): unknown => {
  const names = db
    .query("select name from sqlite_schema where type = 'table' and name <> 'migrations'")
    .values()
    .flat()
    .filter((name) => !isByHand(name));
  const about = (name: unknown) => ({
    columns: db
      .query(`select name, type, "notnull", dflt_value, pk from pragma_table_info('${name}') order by name`)
      .all(),
    references: db
      .query(`select "table", "from", "to", on_delete from pragma_foreign_key_list('${name}') order by 2`)
      .all(),
    indexes: db
      .query(`select sql from sqlite_schema where type = 'index' and tbl_name = '${name}' order by name`)
      .all(),
  });
  return Object.fromEntries(names.sort().map((name) => [name, about(name)]));
};

describe("the schema", () => {
  test("[ST-21] the migrations make what the schema describes, nothing more and nothing less", async () => {
    using place = temporaryDirectory();
    const migrated = new Database(":memory:");
    migrate(migrated, { directory: place.path, now: 1 });
    const described = new Database(":memory:");
    const nothing = await generateSQLiteDrizzleJson({});
    const everything = await generateSQLiteDrizzleJson({ ...schema });
    for (const sql of await generateSQLiteMigration(nothing, everything)) described.run(sql);
    expect(shapeOf(migrated)).toEqual(shapeOf(described));
    expect(Object.keys(shapeOf(migrated) as object)).toEqual(tables.map(getTableName).sort());
  });

  test("[ST-21] every table can be inserted into by its compiled statement", () => {
    for (const table of tables) expect(insertInto(table)([]).sql).toContain(`"${getTableName(table)}"`);
  });

  test("[ST-21] steps are listed in order, each once, and each has its file", () => {
    const names = MIGRATIONS.map((step) => step.name);
    const files = [...new Bun.Glob("*.sql").scanSync(`${import.meta.dir}/../../db/migrations`)].sort();
    const generated = names.filter((name) => !["0000_search", "0000_user_status"].includes(name));
    expect(generated.map((name) => `${name}.sql`)).toEqual(files);
    expect(names).toEqual([...names].sort());
  });
});
