// Chooses the parts of indexes that answer an audit log search. Pure: converts filters to runs of indexes, which find.ts reads. A run is a
// range of an index in which every entry matches, in list order (rule AU-11).
import type { AuditAction, ResourceType } from "#schema/audit.ts";
import type { Value } from "../../engine/sql.ts";

/** Absent members are ignored. Times are in milliseconds, both inclusive. */
export type AuditFilter = {
  readonly resource_type?: ResourceType | undefined;
  readonly action?: AuditAction | undefined;
  readonly build_reason?: string | undefined;
  readonly resource_id?: string | undefined;
  readonly request_id?: string | undefined;
  /** Case-insensitive. */
  readonly resource_target?: string | undefined;
  /** An empty list matches nothing. */
  readonly user_ids?: readonly string[] | undefined;
  readonly organization_id?: string | undefined;
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  /** Only entries of these organizations, which the caller may see. */
  readonly within?: readonly string[] | undefined;
};

/** An expression that must have one of these values. */
export type Condition = { readonly column: string; readonly values: readonly Value[] };

/** The entries of an index whose leading columns have these values. */
export type IndexRun = { readonly index: string; readonly where: readonly (readonly [column: string, value: Value])[] };

/** The columns before the time in indexes of people and organizations. Together they have a few dozen values. */
export const KIND = ["resource_type", "action", "build_reason"] as const;
export type Kind = readonly [resource_type: string, action: string, build_reason: string];
export type WantedKind = readonly [string | undefined, string | undefined, string | undefined];

/** An index that contains all runs of a filter; `leading` are the columns before the kind. Without kinds, it is one run. */
export type IndexRange = {
  readonly index: string;
  /** A column without values matches every value. */
  readonly leading: readonly { readonly column: string; readonly values?: readonly Value[] }[];
  readonly kind?: WantedKind;
};

const toRuns = (column: string, index: string, value: string | undefined): IndexRun[] =>
  value === undefined ? [] : [{ index, where: [[column, value]] }];

/** Returns the runs of the requested entity, usually short. A single run is sufficient if the other conditions are checked in its rows. */
export const listEntityRuns = (filter: AuditFilter): IndexRun[] => [
  ...toRuns("request_id", "audit_logs_request", filter.request_id),
  ...toRuns("resource_id", "audit_logs_resource", filter.resource_id),
  ...toRuns("lower(resource_target)", "audit_logs_target", filter.resource_target?.toLowerCase()),
];

/** Undefined: all. Empty: nothing matches. */
const selectOrganizations = ({ organization_id, within }: AuditFilter): readonly string[] | undefined => {
  if (organization_id === undefined) return within && [...new Set(within)];
  return within && !within.includes(organization_id) ? [] : [organization_id];
};

/** Returns the index that has the conditions on person, organization and kind before the time. */
export const toIndexRange = (filter: AuditFilter): IndexRange => {
  const { resource_type, action, build_reason, user_ids } = filter;
  const kind: WantedKind = [resource_type, action, build_reason];
  const organizations = selectOrganizations(filter);
  const organizationColumn = { column: "organization_id", ...(organizations && { values: organizations }) };
  if (user_ids) {
    const userColumn = { column: "user_id", values: [...new Set(user_ids)] };
    return { index: "audit_logs_user", leading: [userColumn, organizationColumn], kind };
  }
  if (organizations) return { index: "audit_logs_organization", leading: [organizationColumn], kind };
  if (kind.some((part) => part !== undefined)) return { index: "audit_logs_kind", leading: [], kind };
  return { index: "audit_logs_time", leading: [] };
};

/** Returns the conditions, other than the time, that these runs do not cover. */
export const toConditions = (filter: AuditFilter, runs: readonly IndexRun[]): Condition[] => {
  const coveredColumns = new Set(runs.flatMap(({ where }) => where.map(([column]) => column)));
  const { leading, kind = [] } = toIndexRange(filter);
  const all = [
    ...listEntityRuns(filter).flatMap(({ where }) => where.map(([column, value]) => ({ column, values: [value] }))),
    ...leading.flatMap(({ column, values }) => (values ? [{ column, values }] : [])),
    ...kind.flatMap((value, n) => (value === undefined ? [] : [{ column: KIND[n] as string, values: [value] }])),
  ];
  return all.filter(({ column }) => !coveredColumns.has(column));
};

/** A position between entries of an index, by kind and time. A walk through kinds goes in descending order below it. */
export type IndexBound = readonly [...Kind, time: number];

/** Greater than every time. */
export const MAX_TIME = 9e15;
/** Greater than every word in SQLite's order. */
const MAX_WORD = "\u{10ffff}";

const boundAbove = ([type = MAX_WORD, action = MAX_WORD, reason = MAX_WORD]: readonly string[]): IndexBound => [
  type,
  action,
  reason,
  MAX_TIME,
];
const boundBelow = ([type = "", action = "", reason = ""]: readonly string[]): IndexBound => [
  type,
  action,
  reason,
  -MAX_TIME,
];

/** Returns where a walk begins. */
export const toFirstBound = (wanted: WantedKind): IndexBound => {
  const firstFree = wanted.indexOf(undefined);
  return boundAbove(wanted.slice(0, firstFree === -1 ? wanted.length : firstFree) as string[]);
};

/** Decides about a kind that a walk has found: whether it matches, and where to continue; without a bound, the walk ends. */
export const toNextStep = (wanted: WantedKind, found: Kind): { matches: boolean; bound?: IndexBound } => {
  const mismatch = found.findIndex((value, n) => wanted[n] !== undefined && wanted[n] !== value);
  if (mismatch === -1) {
    const last = wanted.lastIndexOf(undefined);
    return last === -1 ? { matches: true } : { matches: true, bound: boundBelow(found.slice(0, last + 1)) };
  }
  const before = found.slice(0, mismatch);
  const value = wanted[mismatch] as string;
  if ((found[mismatch] as string) > value) return { matches: false, bound: boundAbove([...before, value]) };
  return mismatch === 0 ? { matches: false } : { matches: false, bound: boundBelow(before) };
};
