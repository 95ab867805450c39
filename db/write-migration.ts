// `bun run migration -- --name what_it_does`: writes the next migration for both databases, and lists new files of db/schema in its index.
// Drizzle Kit compares db/schema with what it was when the newest migration was committed, so the repository holds no snapshot of it.
// PostgreSQL's migration is printed from the same schema by pg/print-step.ts.
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { generateSQLiteDrizzleJson, generateSQLiteMigration } from "drizzle-kit/api";
import { is } from "drizzle-orm";
import { SQLiteTable } from "drizzle-orm/sqlite-core";
import { readStepFiles } from "./step-files.ts";

const ROOT = join(import.meta.dir, "..");
const SCHEMA = "db/schema";
const BREAK = "--> statement-breakpoint";

type Exports = Readonly<Record<string, unknown>>;

/** Returns what the files of `db/schema` below this folder export, by the file's name; those without a table are left out. */
const readSchema = async (root: string): Promise<ReadonlyMap<string, Exports>> => {
  const files = new Map<string, Exports>();
  for (const file of readdirSync(join(root, SCHEMA)).sort()) {
    if (file === "index.ts") continue;
    const exported: Exports = await import(join(root, SCHEMA, file));
    if (Object.values(exported).some((one) => is(one, SQLiteTable))) files.set(file, exported);
  }
  return files;
};

const describe = async (root: string) =>
  generateSQLiteDrizzleJson(Object.assign({}, ...(await readSchema(root)).values()));

/** Returns the text of `db/schema/index.ts`. */
export const printIndex = async (): Promise<string> => {
  const lines = [...(await readSchema(ROOT)).keys()].map((file) => `export * from ${JSON.stringify(`./${file}`)};`);
  return ["// Every table. Written by `bun run migration` from the files of this folder.", ...lines, ""].join("\n");
};

const git = (...args: string[]): Buffer => {
  const { exitCode, stdout, stderr } = Bun.spawnSync(["git", ...args], { cwd: ROOT });
  if (exitCode !== 0) throw new Error(`git ${args[0]}: ${stderr.toString().trim()}`);
  return stdout;
};

/** Runs `read` with a copy of the schema from the commit that has added the newest migration. */
const withPrevious = async <T>(newest: string, read: (root: string) => Promise<T>): Promise<T> => {
  const file = `db/migrations/${newest}.sql`;
  const commit = git("log", "-1", "--diff-filter=A", "--format=%H", "--", file).toString().trim();
  if (commit === "")
    throw new Error(`${file} is not committed. Commit it, or remove it and its twin in db/pg/migrations.`);
  // Inside the repository, where imports of packages resolve.
  mkdirSync(join(ROOT, "dist"), { recursive: true });
  const copy = mkdtempSync(join(ROOT, "dist", "schema-"));
  try {
    const archive = git("archive", "--format=tar", commit, SCHEMA, "src/base", "src/schema", "package.json");
    const { exitCode } = Bun.spawnSync(["tar", "-x", "-C", copy], { stdin: archive });
    if (exitCode !== 0) throw new Error("tar could not unpack the previous schema");
    return await read(copy);
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
};

/** Returns the statements for SQLite that lead from this migration to `db/schema`. */
const listStatements = async (newest: string): Promise<readonly string[]> => {
  const before = await withPrevious(newest, describe);
  const statements = await generateSQLiteMigration(before, await describe(ROOT));
  if (statements.length === 0) throw new Error(`db/schema has not changed since ${newest}.`);
  return statements.map((one) => one.trim());
};

const write = async (name: string): Promise<void> => {
  writeFileSync(join(ROOT, SCHEMA, "index.ts"), await printIndex());
  const newest = readStepFiles("migrations").at(-1)?.[0] ?? "";
  const statements = await listStatements(newest);
  const file = `${String(Number.parseInt(newest, 10) + 1).padStart(4, "0")}_${name}.sql`;
  const save = (folder: string, texts: readonly string[]): void => {
    writeFileSync(join(import.meta.dir, folder, file), `${texts.join(`\n${BREAK}\n`)}\n`);
    process.stdout.write(`db/${folder}/${file}\n`);
  };
  save("migrations", statements);
  // It reads the index, which may be new.
  const { printStep } = await import("./pg/print-step.ts");
  save(
    "pg/migrations",
    statements.flatMap(printStep).map((one) => `${one};`),
  );
};

if (import.meta.main) {
  const { values } = parseArgs({ options: { name: { type: "string" } } });
  if (!values.name) throw new Error("usage: bun run migration -- --name what_it_does");
  await write(values.name);
}
