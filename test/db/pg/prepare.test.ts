// Every statement that this program compiles is understood by PostgreSQL, so that none is found out in somebody's cluster.
import { expect } from "bun:test";
import { fileURLToPath } from "node:url";
import { SQL } from "bun";
import { compiledTexts } from "#db/engine/sql.ts";
import { tableConfigs } from "#db/pg/tables.ts";
import { toPostgres } from "#db/pg/text.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createDatabase } from "#test/support/postgres.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** Reports are read by statements of their own, one for each database. */
const isElsewhere = (file: string): boolean =>
  file.includes("/migrations/") || /worker|drizzle\.config|\.d\.ts$|print-migration/.test(file);

const TABLES = new Set(tableConfigs().map(({ name }) => name));

/** The text, unless it is one of another test in this process: about tables of its own, or one that cannot be compiled. */
const ours = (text: () => string): string[] => {
  try {
    const [, table] = /^(?:insert into|update|delete from|select .*? from) "(\w+)"/s.exec(text()) ?? [];
    return table === undefined || TABLES.has(table) ? [text()] : [];
  } catch {
    return [];
  }
};

testNeeding([needs.postgres], "[PQ-1] every statement that is compiled can be prepared on PostgreSQL", async () => {
  for (const file of new Bun.Glob("db/**/*.ts").scanSync({ cwd: ROOT }))
    if (!isElsewhere(`/${file}`)) await import(ROOT + file);
  await import("#src/context/open.ts");
  const texts = [...new Set(compiledTexts.flatMap(ours))];
  expect(texts.length).toBeGreaterThan(250);
  const made = await createDatabase();
  await using sql = new SQL(made.url, { max: 1 });
  const refused: string[] = [];
  for (const text of texts) {
    const postgres = toPostgres(text);
    await sql
      .unsafe(`prepare one as ${postgres}`)
      .simple()
      .then(
        () => sql.unsafe("deallocate one").simple(),
        (error: Error) => refused.push(`${error.message}\n  ${postgres.replace(/\s+/g, " ")}`),
      );
  }
  await sql.close();
  await made.remove();
  expect(refused).toEqual([]);
});
