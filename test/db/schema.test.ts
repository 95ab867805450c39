// db/schema and db/migrations are equivalent: the tables that Drizzle would create equal the tables that the migrations create.
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { generateSQLiteDrizzleJson, generateSQLiteMigration } from "drizzle-kit/api";
import { getTableName, is } from "drizzle-orm";
import { SQLiteTable } from "drizzle-orm/sqlite-core";
import { migrate } from "#db/engine/migrate.ts";
import { insertInto } from "#db/engine/sql.ts";
import { printStep } from "#db/pg/print-step.ts";
import * as schema from "#db/schema/index.ts";
import { printIndex } from "#db/write-migration.ts";
import { temporaryDirectory } from "./deployments.ts";
import { describeSchema } from "./shape.ts";

const DB = `${import.meta.dir}/../../db`;
const tables = Object.values(schema).flatMap((table) => (is(table, SQLiteTable) ? [table] : []));

describe("the schema", () => {
  test("[ST-21] the migrations create exactly what the schema describes", async () => {
    using temp = temporaryDirectory();
    const migrated = new Database(":memory:");
    migrate(migrated, { directory: temp.path, now: 1 });
    const described = new Database(":memory:");
    const emptySchema = await generateSQLiteDrizzleJson({});
    const fullSchema = await generateSQLiteDrizzleJson({ ...schema });
    for (const sql of await generateSQLiteMigration(emptySchema, fullSchema)) described.run(sql);
    expect(describeSchema(migrated)).toEqual(describeSchema(described));
    expect(Object.keys(describeSchema(migrated) as object)).toEqual(tables.map(getTableName).sort());
  });

  test("[ST-21] every table can be inserted into by its compiled statement", () => {
    for (const table of tables) expect(insertInto(table)([]).sql).toContain(`"${getTableName(table)}"`);
  });

  test("[ST-21] a change of db/schema has its migration, for both databases", async () => {
    const advice = "run `bun run migration -- --name what_it_does`";
    expect([advice, readFileSync(`${DB}/schema/index.ts`, "utf8")]).toEqual([advice, await printIndex()]);
    // Earlier migrations were written for only one of the two databases.
    const listLaterMigrations = (folder: string) => readdirSync(`${DB}/${folder}`).filter((file) => file >= "0027");
    expect([advice, listLaterMigrations("pg/migrations")]).toEqual([advice, listLaterMigrations("migrations")]);
  });

  test("[PQ-3] a migration of SQLite is translated to PostgreSQL, or must be written by hand", () => {
    const column = "ALTER TABLE `workspaces` ADD `task_id` text;";
    expect(printStep(column)).toEqual([expect.stringMatching(/^alter table "workspaces" add column "task_id" text/)]);
    const [table = "", ...otherStatements] = printStep(
      "CREATE TABLE `group_members` (\n\t`group_id` text NOT NULL\n);",
    );
    expect(table).toStartWith('create table "group_members" (');
    expect(
      otherStatements.filter((text) => text.startsWith('alter table "group_members" add foreign key')),
    ).toHaveLength(3);
    expect(printStep('CREATE UNIQUE INDEX `groups_name` ON `groups` (`organization_id`,lower("name"));')).toEqual([
      expect.stringMatching(/^create unique index "groups_name" on "groups" \("organization_id"/),
    ]);
    expect(printStep("DROP TABLE `old`;")).toEqual(['drop table "old"']);
    expect(() => printStep("update workspaces set part = 1")).toThrow("by hand");
    expect(() => printStep("ALTER TABLE `workspaces` ADD `nowhere` text;")).toThrow("no column workspaces.nowhere");
  });
});
