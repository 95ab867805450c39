// Damaged database files: how SQLite reports damage, which tables it affects, and what an operator should do.

/** Returns whether SQLite found the file damaged or not a database. */
export const isDamage = (error: unknown): boolean => {
  if (!(error instanceof Error)) return false;
  const { code = "" } = error as { code?: unknown };
  return /^SQLITE_(CORRUPT|NOTADB)/.test(String(code)) || isDamage(error.cause);
};

export const NEXT_STEP =
  "Stop the server. Then restore a backup with `slipway restore`, or copy what can be read with `slipway salvage`.";

export type Damage = { readonly problems: readonly string[]; readonly tables: readonly string[] };

/** Returns the first column of a query. */
type QueryColumn = (sql: string, ...params: string[]) => Promise<string[]>;

const TABLES = "select name from sqlite_schema where type = 'table' and rootpage > 0";

/**
 * Checks the whole database and returns the problems that SQLite reports; undefined if it is intact. If a damaged page stops the check,
 * checks the tables one by one. Throws if the list of tables is unreadable too.
 */
export const findDamage = async (runQuery: QueryColumn): Promise<Damage | undefined> => {
  const problems = await listProblems(runQuery);
  if (problems.length === 0) return undefined;
  const tables: string[] = [];
  for (const table of await runQuery(TABLES)) {
    const tableProblems = await listProblems(runQuery, table);
    if (tableProblems.length > 0) tables.push(table);
    problems.push(...tableProblems.filter((line) => !problems.includes(line)).map((line) => `${table}: ${line}`));
  }
  return { problems, tables: tables.sort() };
};

/** Returns the problems, one per line: SQLite returns a heading and several problems as one text. */
const listProblems = async (runQuery: QueryColumn, table?: string): Promise<string[]> => {
  try {
    const check = `select quick_check from pragma_quick_check${table === undefined ? "" : "(?)"}`;
    const answer = (await runQuery(check, ...(table === undefined ? [] : [table]))).flatMap((text) => text.split("\n"));
    return answer.filter((line) => line !== "" && line !== "ok" && !line.startsWith("*** "));
  } catch (error) {
    if (!isDamage(error)) throw error;
    return [error instanceof Error ? error.message.replace(/^reader: /, "") : String(error)];
  }
};

/** Describes the damage: where it is, and what SQLite reports. */
export const describeDamage = ({ problems, tables }: Damage): string => {
  const location = tables.length > 0 ? `damaged in ${tables.join(", ")}` : "damaged";
  const more = problems.length > 1 ? ` and ${problems.length - 1} more problems` : "";
  return `${location}: ${problems[0]}${more}`;
};
