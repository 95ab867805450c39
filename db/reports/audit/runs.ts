// Reads runs of the audit log's indexes (plan.ts) in a reader Worker: lists them, merges a page from several, counts entries. Used only by
// find.ts. All compiled SQL depends on columns, never on search values.
import type { Database } from "bun:sqlite";
import type { Value } from "../../engine/sql.ts";
import {
  type Condition,
  type IndexBound,
  type IndexRange,
  type IndexRun,
  KIND,
  type Kind,
  MAX_TIME,
  toFirstBound,
  toNextStep,
} from "./plan.ts";

/** The last entry of the previous page. */
export type AuditCursor = { readonly time: number; readonly key: number };

/** Both ends are inclusive. Entries must come after the cursor. */
export type Span = { readonly from?: number; readonly to?: number; readonly cursor?: AuditCursor };

/** The entries of any of these runs that meet the conditions. */
export type Source = { readonly runs: readonly IndexRun[]; readonly conditions: readonly Condition[] };

/** Maximum runs joined in one statement; SQLite's limit is 500. */
const MAX_JOINED_RUNS = 250;

/** Yields all runs that may have entries. */
export function* iterateRuns(db: Database, { index, leading, kind }: IndexRange): Generator<IndexRun> {
  for (const prefix of iteratePrefixes(db, index, leading)) {
    if (!kind) yield { index, where: prefix };
    else for (const run of iterateKinds(db, { index, where: prefix }, kind)) yield run;
  }
}

function* iteratePrefixes(
  db: Database,
  index: string,
  [next, ...rest]: IndexRange["leading"],
  known: IndexRun["where"] = [],
): Generator<IndexRun["where"]> {
  if (!next) {
    yield known;
    return;
  }
  for (const value of next.values ?? iterateValues(db, { index, where: known }, next.column)) {
    yield* iteratePrefixes(db, index, rest, [...known, [next.column, value]]);
  }
}

/** Yields the distinct values of a column, including null, with one index lookup each, regardless of the number of entries. */
function* iterateValues(db: Database, run: IndexRun, column: string): Generator<Value> {
  yield null;
  const minimum = db.query(`select min(${column}) from ${fromRun(run)} and ${column} > ?`);
  for (let previous: Value = ""; ; ) {
    const [value] = minimum.values(...(listValues(run) as never[]), previous as never)[0] ?? [];
    if (value === null || value === undefined) return;
    previous = value as Value;
    yield previous;
  }
}

/** Yields the runs of matching kinds in a part of an index, with one or two lookups each. */
function* iterateKinds(
  db: Database,
  { index, where }: IndexRun,
  wanted: NonNullable<IndexRange["kind"]>,
): Generator<IndexRun> {
  const makeRun = (kind: Kind): IndexRun => ({
    index,
    where: [...where, ...KIND.map((name, n) => [name, kind[n] as string] as const)],
  });
  if (wanted.every((part) => part !== undefined)) {
    yield makeRun(wanted as Kind);
    return;
  }
  const columns = KIND.join(", ");
  const order = KIND.map((name) => `${name} desc`).join(", ");
  // Includes the time: with a bound that ends before it, SQLite would read every entry with these values.
  const isBelow = `(${columns}, time) < (?, ?, ?, ?)`;
  const greatestKind = db.query(
    `select ${columns} from ${fromRun({ index, where })} and ${isBelow} order by ${order} limit 1`,
  );
  for (let bound: IndexBound | undefined = toFirstBound(wanted); bound; ) {
    const found = greatestKind.values(...([...listValues({ index, where }), ...bound] as never[]))[0] as
      | Kind
      | undefined;
    if (!found) return;
    const step = toNextStep(wanted, found);
    if (step.matches) yield makeRun(found);
    bound = step.bound;
  }
}

const fromRun = ({ index, where }: IndexRun): string =>
  `audit_logs indexed by ${index} where ${["true", ...where.map(([column]) => `${column} is ?`)].join(" and ")}`;
const listValues = ({ where }: IndexRun): Value[] => where.map(([, value]) => value);

type SqlText = { readonly text: string; readonly params: readonly Value[] };

/** Selects the entries of a run in a span that meet the conditions. Omits unneeded conditions, which would be checked for every entry. */
const selectEntries = (run: IndexRun, conditions: readonly Condition[], { from, to, cursor }: Span): SqlText => {
  const parts: SqlText[] = [{ text: fromRun(run), params: listValues(run) }];
  if (from !== undefined) parts.push({ text: "time >= ?", params: [from] });
  const last = Math.min(to ?? MAX_TIME, cursor?.time ?? MAX_TIME);
  if (last < MAX_TIME) parts.push({ text: "time <= ?", params: [last] });
  if (cursor) parts.push({ text: "(time < ? or key < ?)", params: [cursor.time, cursor.key] });
  for (const { column, values } of conditions) {
    parts.push({ text: `${column} in (${values.map(() => "?").join(", ")})`, params: values });
  }
  return { text: parts.map(({ text }) => text).join(" and "), params: parts.flatMap(({ params }) => params) };
};

/** Selects the entries of all runs, unordered. */
const selectAll = ({ runs, conditions }: Source, span: Span): SqlText => {
  const parts = runs.map((run) => selectEntries(run, conditions, span));
  return {
    text: parts.map(({ text }) => `select time, key from ${text}`).join(" union all "),
    params: parts.flatMap(({ params }) => params),
  };
};

const NEWEST_FIRST = " order by time desc, key desc";

type Entry = readonly [time: number, key: number];
const compareNewestFirst = (a: Entry, b: Entry): number => b[0] - a[0] || b[1] - a[1];

/** Not cached, because there is one statement for each number of runs. */
const queryUncached = (db: Database, { text, params }: SqlText): Value[][] => {
  const statement = db.prepare(text);
  try {
    return statement.values(...(params as never[])) as Value[][];
  } finally {
    statement.finalize();
  }
};

/** Returns the keys of a page, newest first. Reads at most as many runs as it returns entries, the ones with the newest entries. */
export const selectPage = (db: Database, source: Source, span: Span, limit: number, offset: number): number[] => {
  const maxCount = Math.min(limit + offset, Number.MAX_SAFE_INTEGER);
  const runs = source.runs.length <= 1 ? source.runs : selectNewestRuns(db, source, span, maxCount);
  const read = (selected: readonly IndexRun[], first: number, count: number): Entry[] => {
    if (selected.length === 0) return [];
    const { text, params } = selectAll({ ...source, runs: selected }, span);
    return queryUncached(db, {
      text: `${text}${NEWEST_FIRST} limit ? offset ?`,
      params: [...params, count, first],
    }) as unknown as Entry[];
  };
  if (runs.length <= MAX_JOINED_RUNS) return read(runs, offset, limit).map(([, key]) => key);
  const entries: Entry[] = [];
  for (let at = 0; at < runs.length; at += MAX_JOINED_RUNS)
    entries.push(...read(runs.slice(at, at + MAX_JOINED_RUNS), 0, maxCount));
  return entries
    .sort(compareNewestFirst)
    .slice(offset, maxCount)
    .map(([, key]) => key);
};

const selectNewestRuns = (db: Database, { runs, conditions }: Source, span: Span, maxCount: number): IndexRun[] => {
  const found: { run: IndexRun; entry: Entry }[] = [];
  for (const run of runs) {
    const { text, params } = selectEntries(run, conditions, span);
    const newest = db.query(`select time, key from ${text}${NEWEST_FIRST} limit 1`).values(...(params as never[]))[0];
    if (newest) found.push({ run, entry: newest as unknown as Entry });
  }
  const first = found.sort((a, b) => compareNewestFirst(a.entry, b.entry)).slice(0, maxCount);
  return first.map(({ run }) => run);
};

/** Counts the entries of a source, up to `maxCount`. */
export const countEntries = (db: Database, { runs, conditions }: Source, span: Span, maxCount: number): number => {
  let count = 0;
  for (const run of runs) {
    const { text, params } = selectEntries(run, conditions, span);
    const counting = db.query(`select count(*) from (select 1 from ${text} limit ?)`);
    count += Number(counting.values(...(params as never[]), (maxCount - count) as never)[0]?.[0]);
    if (count >= maxCount) break;
  }
  return count;
};
