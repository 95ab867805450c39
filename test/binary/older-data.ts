// A data directory as the program of one step of the database ago would have left it: the newest step is taken back. A program without that
// step cannot write one here, since this source already reads what the step brings.
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { MIGRATIONS } from "#db/engine/migrations.ts";

/** Takes the newest step back in a directory that no server uses. Throws for a statement that it does not know the way back of. */
export const takeBackNewestStep = (directory: string): void => {
  using db = new Database(join(directory, "slipway.db"));
  const newest = MIGRATIONS.at(-1)?.sql ?? "";
  const statements = newest.split("--> statement-breakpoint").map((one) => one.replace(/^--.*$/gm, "").trim());
  for (const one of statements.reverse()) {
    const back = wayBack(one);
    if (back) db.run(back);
  }
  db.run("delete from migrations where version = (select max(version) from migrations)");
};

const wayBack = (sql: string): string | undefined => {
  const [, table, column] = /^alter table `(\w+)` add `(\w+)`/i.exec(sql) ?? [];
  if (column) return `alter table ${table} drop column ${column}`;
  const [, kind, name] = /^create (?:unique )?(table|index) `(\w+)`/i.exec(sql) ?? [];
  if (name) return `drop ${kind} ${name}`;
  // Rows that were filled in go with their column.
  if (sql === "" || /^(update|with\b[\s\S]*\bupdate) /i.test(sql)) return undefined;
  throw new Error(`no way back is known of: ${sql}`);
};
