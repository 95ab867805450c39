// A damaged database file: how SQLite reports one, which tables the damage is in, and what an operator does next.

/** Returns whether SQLite has found the file damaged, or to be no database. */
export const isDamage = (error: unknown): boolean => {
  if (!(error instanceof Error)) return false;
  const { code = "" } = error as { code?: unknown };
  return /^SQLITE_(CORRUPT|NOTADB)/.test(String(code)) || isDamage(error.cause);
};

export const NEXT_STEP =
  "Stop the server. Then restore a backup with `slipway restore`, or copy what can be read with `slipway salvage`.";

export type Damage = { readonly problems: readonly string[]; readonly tables: readonly string[] };

/** Answers the first column of a query. */
type Ask = (sql: string, ...params: string[]) => Promise<string[]>;

const TABLES = "select name from sqlite_schema where type = 'table' and rootpage > 0";

/**
 * Looks through the whole database, and returns what SQLite reports, to its end; undefined: it is sound. Where the check itself ends at a damaged
 * page, the tables are looked at one by one. Throws where not even their list can be read.
 */
export const findDamage = async (ask: Ask): Promise<Damage | undefined> => {
  const problems = await problemsIn(ask);
  if (problems.length === 0) return undefined;
  const tables: string[] = [];
  for (const table of await ask(TABLES)) {
    const own = await problemsIn(ask, table);
    if (own.length > 0) tables.push(table);
    problems.push(...own.filter((line) => !problems.includes(line)).map((line) => `${table}: ${line}`));
  }
  return { problems, tables: tables.sort() };
};

/** SQLite puts a heading and several problems into one text. */
const problemsIn = async (ask: Ask, table?: string): Promise<string[]> => {
  try {
    const check = `select quick_check from pragma_quick_check${table === undefined ? "" : "(?)"}`;
    const answer = (await ask(check, ...(table === undefined ? [] : [table]))).flatMap((text) => text.split("\n"));
    return answer.filter((line) => line !== "" && line !== "ok" && !line.startsWith("*** "));
  } catch (error) {
    if (!isDamage(error)) throw error;
    return [error instanceof Error ? error.message.replace(/^reader: /, "") : String(error)];
  }
};

/** Returns the damage in words: where, and what SQLite reports. */
export const describeDamage = ({ problems, tables }: Damage): string => {
  const where = tables.length > 0 ? `damaged in ${tables.join(", ")}` : "damaged";
  const more = problems.length > 1 ? ` and ${problems.length - 1} more problems` : "";
  return `${where}: ${problems[0]}${more}`;
};
