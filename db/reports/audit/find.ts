// Finds entries of the audit log in a reader Worker (reader.worker.ts): the keys of a page, newest first, and how many match. What it reads
// follows from what it answers and not from how long the log is (rule AU-11): people, organizations and kinds are read run by run of an
// index that has nothing else in it; of one thing's entries the rest is looked at one by one, of a name's in its index.
import type { Database } from "bun:sqlite";
import type { Query } from "../../engine/sql.ts";
import { type AuditFilter, listThingRuns, toConditions, toPlace } from "./plan.ts";
import { type AuditCursor, countEntries, runsAt, type Source, type Span, selectPage } from "./runs.ts";

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
  const source = chooseSource(db, filter, whole);
  if (!counted || cursor || source.conditions.length === 0 || offset + limit > COUNT_CAP) {
    const keys = selectPage(db, source, cursor ? { ...whole, cursor } : whole, limit, offset);
    return { keys, count: counted ? countEntries(db, source, whole, COUNT_CAP + 1) : 0 };
  }
  // Where entries are looked at one by one, once is enough for both.
  const keys = selectPage(db, source, whole, COUNT_CAP + 1, 0);
  return { keys: keys.slice(offset, offset + limit), count: keys.length };
};

/** Of so many entries every row is looked at. */
const FEW = 2_000;

/** The quickest way to what a filter asks for; how much there is to read is counted no further than it matters. */
const chooseSource = (db: Database, filter: AuditFilter, span: Span): Source => {
  const place = toPlace(filter);
  const things = listThingRuns(filter).map((run) => ({ runs: [run], conditions: toConditions(filter, [run]) }));
  const last = things.at(-1);
  if (!last) return { runs: [...runsAt(db, place)], conditions: [] };
  const isFew = ({ runs }: Source) => countEntries(db, { runs, conditions: [] }, span, FEW + 1) <= FEW;
  const few = things.find((one) => one.conditions.length === 0 || isFew(one));
  if (few || !place.kind) return few ?? last;
  // A name that thousands of entries have. Its index says the rest, too, but what is rarer is quicker.
  const runs = [...runsAt(db, place)];
  const rest = { runs, conditions: toConditions(filter, runs) };
  return isFew(rest) ? rest : last;
};
