// Creates the data directory of an earlier build by reverting the newest migration. A program without that migration cannot be run here,
// because this source already reads what the migration adds.
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { MIGRATIONS } from "#db/engine/migrations.ts";

/** Reverts the newest migration in an unused data directory. Throws for a statement that it cannot revert. */
export const revertNewestMigration = (directory: string): void => {
  using db = new Database(join(directory, "slipway.db"));
  const newest = MIGRATIONS.at(-1)?.sql ?? "";
  const statements = newest
    .split("--> statement-breakpoint")
    .map((statement) => statement.replace(/^--.*$/gm, "").trim());
  for (const statement of statements.reverse()) {
    const inverse = findInverse(statement);
    if (inverse) db.run(inverse);
  }
  db.run("delete from migrations where version = (select max(version) from migrations)");
};

const findInverse = (sql: string): string | undefined => {
  const [, table, column] = /^alter table `(\w+)` add `(\w+)`/i.exec(sql) ?? [];
  if (column) return `alter table ${table} drop column ${column}`;
  const [, kind, name] = /^create (?:unique )?(table|index) `(\w+)`/i.exec(sql) ?? [];
  if (name) return `drop ${kind} ${name}`;
  // Updated values disappear with their column, and an unused directory has no rows that a migration could have deleted.
  if (sql === "" || /^(update|delete from|with\b[\s\S]*\bupdate) /i.test(sql)) return undefined;
  throw new Error(`cannot revert this statement: ${sql}`);
};
