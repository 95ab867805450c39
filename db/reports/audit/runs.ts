// Reads runs of the audit log's indices (audit-plan.ts) in a reader Worker: which there are, a page of several together, how many entries
// they have. Used by audit-find.ts alone. Every text that is compiled here follows from columns, never from what is asked for.
import type { Database } from "bun:sqlite";
import type { Value } from "../../engine/sql.ts";
import {
  type Bound,
  type Condition,
  firstBound,
  KIND,
  type Kind,
  NEVER,
  nextStep,
  type Place,
  type Run,
} from "./plan.ts";

/** The last entry that was seen. */
export type AuditCursor = { readonly time: number; readonly key: number };

/** Both ends included, and the cursor that entries must be behind. */
export type Span = { readonly from?: number; readonly to?: number; readonly cursor?: AuditCursor };

/** Entries of any of these runs that also keep the conditions. */
export type Source = { readonly runs: readonly Run[]; readonly conditions: readonly Condition[] };

/** As many runs are joined in one statement: SQLite takes no more than 500. */
const AT_ONCE = 250;

/** All runs in which entries may be. */
export function* runsAt(db: Database, { index, leading, kind }: Place): Generator<Run> {
  for (const prefix of prefixesAt(db, index, leading)) {
    if (!kind) yield { index, where: prefix };
    else for (const one of kindsAt(db, { index, where: prefix }, kind)) yield one;
  }
}

function* prefixesAt(
  db: Database,
  index: string,
  [next, ...rest]: Place["leading"],
  known: Run["where"] = [],
): Generator<Run["where"]> {
  if (!next) {
    yield known;
    return;
  }
  for (const value of next.values ?? iterateValues(db, { index, where: known }, next.column)) {
    yield* prefixesAt(db, index, rest, [...known, [next.column, value]]);
  }
}

/** Each value of a column once, and null: one look into the index for each, however many entries have it. */
function* iterateValues(db: Database, run: Run, column: string): Generator<Value> {
  yield null;
  const least = db.query(`select min(${column}) from ${fromRun(run)} and ${column} > ?`);
  for (let at: Value = ""; ; ) {
    const [value] = least.values(...(valuesIn(run) as never[]), at as never)[0] ?? [];
    if (value === null || value === undefined) return;
    at = value as Value;
    yield at;
  }
}

/** The runs of wanted kinds within a part of an index, each found with one look or two. */
function* kindsAt(db: Database, { index, where }: Run, wanted: NonNullable<Place["kind"]>): Generator<Run> {
  const makeRun = (kind: Kind): Run => ({
    index,
    where: [...where, ...KIND.map((name, n) => [name, kind[n] as string] as const)],
  });
  if (wanted.every((part) => part !== undefined)) {
    yield makeRun(wanted as Kind);
    return;
  }
  const columns = KIND.join(", ");
  const order = KIND.map((name) => `${name} desc`).join(", ");
  // Up to the time: of a bound that ends before it, SQLite would read every entry that has just these values.
  const below = `(${columns}, time) < (?, ?, ?, ?)`;
  const greatest = db.query(
    `select ${columns} from ${fromRun({ index, where })} and ${below} order by ${order} limit 1`,
  );
  for (let bound: Bound | undefined = firstBound(wanted); bound; ) {
    const found = greatest.values(...([...valuesIn({ index, where }), ...bound] as never[]))[0] as Kind | undefined;
    if (!found) return;
    const step = nextStep(wanted, found);
    if (step.matches) yield makeRun(found);
    bound = step.bound;
  }
}

const row = (parts: readonly string[]): string => `(${parts.join(", ")})`;

const fromRun = ({ index, where }: Run): string =>
  `audit_logs indexed by ${index} where ${["true", ...where.map(([column]) => `${column} is ?`)].join(" and ")}`;
const valuesIn = ({ where }: Run): Value[] => where.map(([, value]) => value);

type Text = { readonly text: string; readonly params: readonly Value[] };

/** Entries of a run within a span that keep the conditions. What does not matter is left out: it would be looked at in every entry. */
const selectEntries = (run: Run, conditions: readonly Condition[], { from, to, cursor }: Span): Text => {
  const parts: Text[] = [{ text: fromRun(run), params: valuesIn(run) }];
  if (from !== undefined) parts.push({ text: "time >= ?", params: [from] });
  const last = Math.min(to ?? NEVER, cursor?.time ?? NEVER);
  if (last < NEVER) parts.push({ text: "time <= ?", params: [last] });
  if (cursor) parts.push({ text: "(time < ? or key < ?)", params: [cursor.time, cursor.key] });
  for (const { column, values } of conditions) {
    parts.push({ text: `${column} in ${row(values.map(() => "?"))}`, params: values });
  }
  return { text: parts.map(({ text }) => text).join(" and "), params: parts.flatMap(({ params }) => params) };
};

/** Entries of all runs together, in no order. */
const selectAll = ({ runs, conditions }: Source, span: Span): Text => {
  const parts = runs.map((run) => selectEntries(run, conditions, span));
  return {
    text: parts.map(({ text }) => `select time, key from ${text}`).join(" union all "),
    params: parts.flatMap(({ params }) => params),
  };
};

const NEWEST_FIRST = " order by time desc, key desc";

type Entry = readonly [time: number, key: number];
const newestFirst = (a: Entry, b: Entry): number => b[0] - a[0] || b[1] - a[1];

/** Statements of many runs are as many as there are numbers of runs: not kept. */
const once = (db: Database, { text, params }: Text): Value[][] => {
  const statement = db.prepare(text);
  try {
    return statement.values(...(params as never[])) as Value[][];
  } finally {
    statement.finalize();
  }
};

/** Keys of a page, newest first. It needs no more runs than it has entries: those whose newest entries are the newest. */
export const selectPage = (db: Database, source: Source, span: Span, limit: number, offset: number): number[] => {
  const most = Math.min(limit + offset, Number.MAX_SAFE_INTEGER);
  const runs = source.runs.length <= 1 ? source.runs : selectNewest(db, source, span, most);
  const read = (some: readonly Run[], first: number, count: number): Entry[] => {
    if (some.length === 0) return [];
    const { text, params } = selectAll({ ...source, runs: some }, span);
    return once(db, {
      text: `${text}${NEWEST_FIRST} limit ? offset ?`,
      params: [...params, count, first],
    }) as unknown as Entry[];
  };
  if (runs.length <= AT_ONCE) return read(runs, offset, limit).map(([, key]) => key);
  const entries: Entry[] = [];
  for (let at = 0; at < runs.length; at += AT_ONCE) entries.push(...read(runs.slice(at, at + AT_ONCE), 0, most));
  return entries
    .sort(newestFirst)
    .slice(offset, most)
    .map(([, key]) => key);
};

const selectNewest = (db: Database, { runs, conditions }: Source, span: Span, most: number): Run[] => {
  const found: { run: Run; entry: Entry }[] = [];
  for (const run of runs) {
    const { text, params } = selectEntries(run, conditions, span);
    const newest = db.query(`select time, key from ${text}${NEWEST_FIRST} limit 1`).values(...(params as never[]))[0];
    if (newest) found.push({ run, entry: newest as unknown as Entry });
  }
  const first = found.sort((a, b) => newestFirst(a.entry, b.entry)).slice(0, most);
  return first.map(({ run }) => run);
};

/** How many entries a source has, as far as `most`. */
export const countEntries = (db: Database, { runs, conditions }: Source, span: Span, most: number): number => {
  let count = 0;
  for (const run of runs) {
    const { text, params } = selectEntries(run, conditions, span);
    const counting = db.query(`select count(*) from (select 1 from ${text} limit ?)`);
    count += Number(counting.values(...(params as never[]), (most - count) as never)[0]?.[0]);
    if (count >= most) break;
  }
  return count;
};
