// Finds entries of the audit log in a reader Worker (reader.worker.ts): the keys of a page, newest first, and how many match. What it reads
// follows from what it answers and not from how long the log is (rule AU-11): people, organizations and kinds are read run by run of an
// index that has nothing else in it. Of one thing's few entries the rest is looked at in the rows; of a name that thousands of entries
// have, the keys are held against those of the rest.
import type { Database } from "bun:sqlite";
import { type AuditFilter, conditionsOf, placeOf, type Run, thingsOf } from "./audit-plan.ts";
import { AT_ONCE, type AuditCursor, countOf, pageOf, runsAt, type Source, type Span } from "./audit-runs.ts";
import type { Query } from "./sql.ts";

/** How far matching entries are counted. */
export const COUNT_CAP = 2_000;

export type AuditSearch = {
  readonly filter: AuditFilter;
  readonly limit: number;
  readonly offset?: number | undefined;
  /** Only entries behind this one; they are counted from the top all the same. */
  readonly cursor?: AuditCursor | undefined;
  readonly counted?: boolean;
};

/** Keys in the order of the list; the count goes as far as one above COUNT_CAP, and is 0 when none was asked for. */
export type AuditFound = { readonly keys: readonly number[]; readonly count: number };

/** For `scan`. A report of one transaction, so that page and count are of one moment. */
export const findAudit = (search: AuditSearch): Query<AuditFound> => ({
  report: "audit",
  sql: "",
  params: [JSON.stringify(search)],
  map: ([text]) => JSON.parse(String(text)) as AuditFound,
});

/** The JSON text of what was found. */
export const auditReport = (db: Database, search: AuditSearch): string => JSON.stringify(found(db, search));

const found = (db: Database, { filter, limit, offset = 0, cursor, counted = false }: AuditSearch): AuditFound => {
  const { from, to } = filter;
  const whole: Span = { ...(from !== undefined && { from }), ...(to !== undefined && { to }) };
  const source = sourceOf(db, filter, whole);
  const keys = pageOf(db, source, cursor ? { ...whole, cursor } : whole, limit, offset);
  if (!counted) return { keys, count: 0 };
  // A page that is not full is the last: what comes before it is known without looking again.
  const isLast = !cursor && keys.length < limit && (keys.length > 0 || offset === 0);
  const count = isLast ? offset + keys.length : countOf(db, source, whole, COUNT_CAP + 1);
  return { keys, count: Math.min(count, COUNT_CAP + 1) };
};

/** Of so many entries every row is looked at. */
const FEW = 2_000;
/** Of so many the keys are made a set, which takes a tenth of a microsecond each. */
const SET = 200_000;

/** The quickest way to what a filter asks for; how much there is to read is counted no further than it matters. */
const sourceOf = (db: Database, filter: AuditFilter, span: Span): Source => {
  const things = thingsOf(filter);
  const place = placeOf(filter);
  if (things.length === 0) return { runs: [...runsAt(db, place)], conditions: [] };
  const sizeOf = (runs: readonly Run[], most: number) => countOf(db, { runs, conditions: [] }, span, most + 1);
  const ways = things.map((run) => ({ runs: [run], conditions: conditionsOf(filter, [run]) }));
  const [first = { runs: [], conditions: [] }] = ways;
  for (const way of ways) if (first.conditions.length === 0 || sizeOf(way.runs, FEW) <= FEW) return way;
  // Names that thousands of entries have. What else is asked for is mostly rarer, or so frequent that a page is soon full.
  if (!place.kind) return first;
  const runs = [...runsAt(db, place)];
  const size = sizeOf(runs, SET);
  if (size <= FEW) return { runs, conditions: conditionsOf(filter, runs) };
  if (size > SET || runs.length > AT_ONCE) return first;
  return { ...first, conditions: conditionsOf(filter, [...first.runs, ...runs]), also: runs };
};
