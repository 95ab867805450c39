// Finds audit log entries in a reader Worker (reader.worker.ts): the keys of a page, newest first, and the number of matches. The amount of
// data read depends on the result and not on the size of the log (rule AU-11). A search by people, organizations and kinds reads runs,
// which are ranges of an index in which every entry matches (plan.ts). A search for one entity filters all entries of that entity.
import type { Database } from "bun:sqlite";
import type { Query } from "../../engine/sql.ts";
import { type AuditFilter, listEntityRuns, toConditions, toIndexRange } from "./plan.ts";
import { type AuditCursor, countEntries, iterateRuns, type Source, type Span, selectPage } from "./runs.ts";

/** Maximum number to which matching entries are counted. */
export const MAX_AUDIT_COUNT = 2_000;

export type AuditSearch = {
  readonly filter: AuditFilter;
  readonly limit: number;
  readonly offset?: number | undefined;
  /** Only entries after this one. The count still includes earlier ones. */
  readonly cursor?: AuditCursor | undefined;
  readonly counted?: boolean;
};

/** Keys in list order. The count goes up to MAX_AUDIT_COUNT + 1, and is 0 if not requested. */
export type AuditFound = { readonly keys: readonly number[]; readonly count: number };

/** For `scan`. Runs in one transaction, so that page and count are consistent. */
export const findAudit = (search: AuditSearch): Query<AuditFound> => ({
  report: "audit",
  sql: "",
  params: [JSON.stringify(search)],
  map: ([text]) => JSON.parse(String(text)) as AuditFound,
});

/** Returns the result as JSON text. */
export const auditReport = (db: Database, search: AuditSearch): string => JSON.stringify(findEntries(db, search));

const findEntries = (db: Database, { filter, limit, offset = 0, cursor, counted = false }: AuditSearch): AuditFound => {
  const { from, to } = filter;
  const fullSpan: Span = { ...(from !== undefined && { from }), ...(to !== undefined && { to }) };
  const source = chooseSource(db, filter, fullSpan);
  if (!counted || cursor || source.conditions.length === 0 || offset + limit > MAX_AUDIT_COUNT) {
    const keys = selectPage(db, source, cursor ? { ...fullSpan, cursor } : fullSpan, limit, offset);
    return { keys, count: counted ? countEntries(db, source, fullSpan, MAX_AUDIT_COUNT + 1) : 0 };
  }
  // If entries are filtered one by one, a single pass gives both.
  const keys = selectPage(db, source, fullSpan, MAX_AUDIT_COUNT + 1, 0);
  return { keys: keys.slice(offset, offset + limit), count: keys.length };
};

/** Up to this many entries, every row is checked. */
const MAX_SCANNED = 2_000;

/** Chooses the fastest source for a filter. Counts candidates only as far as needed. */
const chooseSource = (db: Database, filter: AuditFilter, span: Span): Source => {
  const range = toIndexRange(filter);
  const sources = listEntityRuns(filter).map((run) => ({ runs: [run], conditions: toConditions(filter, [run]) }));
  const last = sources.at(-1);
  if (!last) return { runs: [...iterateRuns(db, range)], conditions: [] };
  const isSmall = ({ runs }: Source) =>
    countEntries(db, { runs, conditions: [] }, span, MAX_SCANNED + 1) <= MAX_SCANNED;
  const smallSource = sources.find((one) => one.conditions.length === 0 || isSmall(one));
  if (smallSource || !range.kind) return smallSource ?? last;
  // The entity has thousands of entries. If fewer entries meet the other conditions, it is faster to search among those.
  const runs = [...iterateRuns(db, range)];
  const otherSource = { runs, conditions: toConditions(filter, runs) };
  return isSmall(otherSource) ? otherSource : last;
};
