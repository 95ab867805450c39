// A workspace program that writes continuously: a row in a SQLite database with a rollback journal, then the same number in a file, and so
// on. In an inconsistent copy, the database is corrupt or the two numbers differ by more than one.
import { Database } from "bun:sqlite";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const LIFETIME_MS = 60_000;
const home = process.env.HOME ?? "";
const folder = join(home, "work");
mkdirSync(folder, { recursive: true });
const database = new Database(join(folder, "rows.db"), { create: true });
database.run("pragma synchronous = off");
database.run("create table if not exists rows (number integer primary key, padding text)");
const insert = database.prepare("insert into rows (padding) values (?) returning number");
/** Longer than any test needs the program. A leftover process ends then. */
const end = performance.now() + LIFETIME_MS;
while (performance.now() < end) {
  const row = insert.get("x".repeat(2_000)) as { number: number };
  writeFileSync(join(folder, "last"), String(row.number));
}
