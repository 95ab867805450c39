// A data directory as left by the program of one migration ago: reverts the newest migration. A program without that migration cannot be
// run here, because this source already reads what the migration adds.
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { MIGRATIONS } from "#db/engine/migrations.ts";

/** Reverts the newest migration in an unused directory. Throws for a statement that it cannot revert. */
export const revertNewestMigration = (directory: string): void => {
  using db = new Database(join(directory, "slipway.db"));
  const newest = MIGRATIONS.at(-1)?.sql ?? "";
  const statements = newest.split("--> statement-breakpoint").map((one) => one.replace(/^--.*$/gm, "").trim());
  for (const one of statements.reverse()) {
    const back = findReverse(one);
    if (back) db.run(back);
  }
  db.run("delete from migrations where version = (select max(version) from migrations)");
};

const findReverse = (sql: string): string | undefined => {
  const [, table, column] = /^alter table `(\w+)` add `(\w+)`/i.exec(sql) ?? [];
  if (column) return `alter table ${table} drop column ${column}`;
  const [, kind, name] = /^create (?:unique )?(table|index) `(\w+)`/i.exec(sql) ?? [];
  if (name) return `drop ${kind} ${name}`;
  // Filled-in values are removed with their column, and an unused directory has no rows that a migration could have deleted.
  if (sql === "" || /^(update|delete from|with\b[\s\S]*\bupdate) /i.test(sql)) return undefined;
  throw new Error(`no way back is known of: ${sql}`);
};
