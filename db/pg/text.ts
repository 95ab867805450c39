// Translates SQLite statements to PostgreSQL, once per statement. The statements of db/ are written for SQLite; common syntax is kept,
// functions that PostgreSQL lacks are created in compat.sql, and the few grammatical differences are rewritten here. Pure.

/** Matches strings, quoted names, comments, and parameters, which are `?` or `?N`. */
const PARAMETER = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\?(\d+)?/g;

/** Returns the same statement for PostgreSQL. */
export const toPostgres = (sql: string): string => {
  if (isSearchUpkeep(sql)) return "select 1 where false";
  let text = numberParameters(sql);
  for (const [form, words] of REWRITES) text = text.replace(form, words as string);
  return nameSubqueries(rewriteIgnore(rewriteSearchInsert(text)));
};

const REWRITES: readonly (readonly [RegExp, string | ((...found: string[]) => string)])[] = [
  // A conflict target names columns without their table.
  [
    /on conflict \(((?:"\w+"\."\w+"(?:, )?)+)\)/g,
    (_, columns = "") => `on conflict (${columns.replace(/"\w+"\./g, "")})`,
  ],
  [/\blimit -1\b/g, "limit all"],
  [/\bjson_object\(/g, "json_build_object("],
  // PostgreSQL's own sum of integers has the type numeric.
  [/\bsum\(/g, "whole_sum("],
  // For a parameter that is compared with a number, PostgreSQL infers a 32-bit type.
  [/(\$\d+) (<<|[-+*/%=]) (?=\d)/g, "$1::bigint $2 "],
  [/(?<!\|)\| (\$\d+)/g, "| $1::bigint"],
  // A bound limit may be -1, meaning no limit.
  [/\blimit (\$\d+)/g, "limit nullif($1::bigint, -1)"],
  // PostgreSQL chooses indexes and the order of joins itself.
  [/ (?:not indexed|indexed by \w+)/g, ""],
  [/cross join (\w+ \w+) on/g, "join $1 on"],
  [/\b(?:message|title)_search match (\$\d+)/g, "words @@ fts_query($1)"],
];

const numberParameters = (sql: string): string => {
  let last = 0;
  return sql.replace(PARAMETER, (found, number?: string) => (found[0] === "?" ? `$${number ?? ++last}` : found));
};

/** FTS5 merges through an insert into a column with the table's name; PostgreSQL merges automatically (autovacuum). */
const isSearchUpkeep = (sql: string): boolean =>
  /^insert into (message|title)_search \((message|title)_search, rank\)/.test(sql) ||
  /from (message|title)_search_data/.test(sql);

const rewriteIgnore = (text: string): string =>
  /^\s*insert or ignore\b/.test(text) ? `${text.replace("insert or ignore", "insert")} on conflict do nothing` : text;

/** Inserts the words of a message or title as a tsvector, replacing earlier ones. */
const rewriteSearchInsert = (text: string): string =>
  /^insert (?:or replace )?into (?:message|title)_search\b/.test(text)
    ? `${text.replace("insert or replace", "insert").replace(/(\$\d+)\)$/, "to_tsvector('simple', $1))")} on conflict (rowid) do update set words = excluded.words`
    : text;

const KEYWORD_AFTER_SUBQUERY =
  /^(where|group|order|limit|join|left|inner|cross|union|on|having|intersect|except|window|offset|returning|using|natural|full|right)\b/i;

/** Before version 16, PostgreSQL requires a name for a subquery in `from`. */
const nameSubqueries = (sql: string): string => {
  let text = sql;
  const opening = /\b(?:from|join)\s*\(/gi;
  for (let count = 0; ; count++) {
    const found = opening.exec(text);
    if (!found) return text;
    const end = findBracketEnd(text, found.index + found[0].length);
    const rest = text.slice(end).trimStart();
    if (rest === "" || /^[),;]/.test(rest) || KEYWORD_AFTER_SUBQUERY.test(rest)) {
      text = `${text.slice(0, end)} as subquery_${count}${text.slice(end)}`;
    }
  }
};

/** Returns the end of the bracket that opens at `from`. */
const findBracketEnd = (text: string, from: number): number => {
  let depth = 1;
  let quote = "";
  let index = from;
  for (; index < text.length && depth > 0; index++) {
    const char = text[index] as string;
    if (quote !== "") quote = char === quote ? "" : quote;
    else if (char === "'" || char === '"') quote = char;
    else if (char === "(") depth++;
    else if (char === ")") depth--;
  }
  return index;
};
