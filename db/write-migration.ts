// `bun run migration -- --name what_it_does`: writes the next step of the schema for both databases from the difference between db/schema and
// the newest snapshot, and lists it. Drizzle Kit writes SQLite's; PostgreSQL's is printed from the same schema by pg/print-step.ts.
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { printStep } from "./pg/print-step.ts";

const FOLDERS = ["migrations", "pg/migrations"];
const BREAK = "--> statement-breakpoint";

const sqlIn = (folder: string): string[] =>
  readdirSync(join(import.meta.dir, folder))
    .filter((name) => name.endsWith(".sql"))
    .sort();

/** Returns the text of `files.ts`, which lists the steps of this folder by name. */
export const listing = (folder: string): string => {
  const names = sqlIn(folder).map((file) => file.slice(0, -".sql".length));
  return [
    "// Written by `bun run migration` from the names of the files beside it.",
    ...names.map((name, at) => `import step${at} from "./${name}.sql" with { type: "text" };`),
    "",
    "export const FILES: readonly (readonly [name: string, sql: string])[] = [",
    ...names.map((name, at) => `  ["${name}", step${at}],`),
    "];",
    "",
  ].join("\n");
};

const writeListings = (): void => {
  for (const folder of FOLDERS) writeFileSync(join(import.meta.dir, folder, "files.ts"), listing(folder));
};

/** Removes all snapshots but the newest: Drizzle Kit compares with that one alone. */
const dropOldSnapshots = (): void => {
  const meta = join(import.meta.dir, "migrations", "meta");
  const snapshots = readdirSync(meta).filter((name) => name.endsWith("_snapshot.json"));
  for (const old of snapshots.sort().slice(0, -1)) rmSync(join(meta, old));
};

const write = (name: string): void => {
  const before = new Set(sqlIn("migrations"));
  const kit = ["node_modules/.bin/drizzle-kit", "generate", "--config", "db/drizzle.config.ts", "--name", name];
  const { exitCode } = Bun.spawnSync(kit, {
    cwd: join(import.meta.dir, ".."),
    stdio: ["inherit", "inherit", "inherit"],
  });
  const file = sqlIn("migrations").find((one) => !before.has(one));
  if (exitCode !== 0 || file === undefined) throw new Error("Drizzle Kit wrote no step: has db/schema changed?");
  dropOldSnapshots();
  const statements = readFileSync(join(import.meta.dir, "migrations", file), "utf8").split(BREAK);
  const printed = statements.flatMap(printStep).join(`;\n${BREAK}\n`);
  writeFileSync(join(import.meta.dir, "pg", "migrations", file), `${printed};\n`);
  writeListings();
};

if (import.meta.main) {
  const { values } = parseArgs({ options: { name: { type: "string" }, list: { type: "boolean" } } });
  if (values.list) writeListings();
  else if (values.name) write(values.name);
  else throw new Error("usage: bun run migration -- --name what_it_does, or --list after a file was removed");
}
