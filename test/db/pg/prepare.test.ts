// PostgreSQL accepts every statement that this program compiles, so that no statement fails only in a cluster.
import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { SQL } from "bun";
import { compiledTexts } from "#db/engine/sql.ts";
import { listTableConfigs } from "#db/pg/tables.ts";
import { toPostgres } from "#db/pg/text.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createDatabase } from "#test/support/postgres.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** Reports use their own statements for each database. */
const isExcluded = (file: string): boolean =>
  file.includes("/migrations/") || /worker|drizzle\.config|\.d\.ts$|print-migration/.test(file);

/** Excludes files whose statements are only for one of the databases. */
const isForBothDatabases = (file: string): boolean => !/db\/(pg|engine|reports|backup)\//.test(file);

const TABLES = new Set(listTableConfigs().map(({ name }) => name));

/** Returns the statements in a file of db/ as plain text. */
const listSourceStatements = (file: string): string[] =>
  [...readFileSync(ROOT + file, "utf8").matchAll(/\bsql: "((?:[^"\\]|\\.)*)"/g)].map(([, text = ""]) => text);

/** Returns the text; nothing for a statement of another test in this process, which has its own tables or cannot be compiled. */
const listOwnTexts = ({ text }: { text: () => string }): string[] => {
  try {
    const [, table] = /^(?:insert into|update|delete from|select .*? from) "(\w+)"/s.exec(text()) ?? [];
    return table === undefined || TABLES.has(table) ? [text()] : [];
  } catch {
    return [];
  }
};

testNeeding([needs.postgres], "[PQ-1] every statement that is compiled can be prepared on PostgreSQL", async () => {
  const files = [...new Bun.Glob("db/**/*.ts").scanSync({ cwd: ROOT })].filter((file) => !isExcluded(`/${file}`));
  for (const file of files) await import(ROOT + file);
  await import("#src/context/open.ts");
  const texts = [
    ...new Set([
      ...compiledTexts.flatMap(listOwnTexts),
      ...files.filter(isForBothDatabases).flatMap(listSourceStatements),
    ]),
  ];
  expect(texts.length).toBeGreaterThan(250);
  const created = await createDatabase();
  await using sql = new SQL(created.url, { max: 1 });
  const rejected: string[] = [];
  for (const text of texts) {
    const postgres = toPostgres(text);
    await sql
      .unsafe(`prepare one as ${postgres}`)
      .simple()
      .then(
        async () => {
          const [{ types }] = await sql.unsafe("select parameter_types::text as types from pg_prepared_statements");
          // These types are too small for a time in milliseconds, or for a key that contains a chat's number.
          if (/\b(integer|smallint|real)\b/.test(types)) rejected.push(`${types}\n  ${postgres.replace(/\s+/g, " ")}`);
          await sql.unsafe("deallocate one").simple();
        },
        (error: Error) => rejected.push(`${error.message}\n  ${postgres.replace(/\s+/g, " ")}`),
      );
  }
  await sql.close();
  await created.remove();
  expect(rejected).toEqual([]);
});
