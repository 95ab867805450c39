// Which part of which index answers a search of the audit log. Pure: what is asked goes in, runs of indices come out; audit-find.ts reads
// them. A run is a stretch of one index in which every entry matches, in the order of the list (rule AU-11).
import type { AuditAction, ResourceType } from "#schema/audit.ts";
import type { Value } from "../../engine/sql.ts";

/** Whatever is absent does not matter. Times are milliseconds, both included. */
export type AuditFilter = {
  readonly resource_type?: ResourceType | undefined;
  readonly action?: AuditAction | undefined;
  readonly build_reason?: string | undefined;
  readonly resource_id?: string | undefined;
  readonly request_id?: string | undefined;
  /** In any letter case. */
  readonly resource_target?: string | undefined;
  /** None: nobody matches. */
  readonly user_ids?: readonly string[] | undefined;
  readonly organization_id?: string | undefined;
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  /** Only entries of these organizations: what the caller may see. */
  readonly within?: readonly string[] | undefined;
};

/** An expression that is to be one of some values. */
export type Condition = { readonly column: string; readonly values: readonly Value[] };

/** The entries of an index whose leading columns have these values. */
export type Run = { readonly index: string; readonly where: readonly (readonly [column: string, value: Value])[] };

/** What comes before the time in the indices of who and where: three columns that together have some dozens of values. */
export const KIND = ["resource_type", "action", "build_reason"] as const;
export type Kind = readonly [resource_type: string, action: string, build_reason: string];
export type WantedKind = readonly [string | undefined, string | undefined, string | undefined];

/** An index in which all runs of a filter are found; `leading` are the columns before the kind. Without kinds it is one run. */
export type Place = {
  readonly index: string;
  /** A column without values: every value that there is. */
  readonly leading: readonly { readonly column: string; readonly values?: readonly Value[] }[];
  readonly kind?: WantedKind;
};

const one = (column: string, index: string, value: string | undefined): Run[] =>
  value === undefined ? [] : [{ index, where: [[column, value]] }];

/** The runs of the one thing that is asked for: mostly short. Each alone is enough, when the other conditions are looked at in its rows. */
export const listThingRuns = (filter: AuditFilter): Run[] => [
  ...one("request_id", "audit_logs_request", filter.request_id),
  ...one("resource_id", "audit_logs_resource", filter.resource_id),
  ...one("lower(resource_target)", "audit_logs_target", filter.resource_target?.toLowerCase()),
];

/** Undefined: all of them. None: nothing matches. */
const selectOrganizations = ({ organization_id, within }: AuditFilter): readonly string[] | undefined => {
  if (organization_id === undefined) return within && [...new Set(within)];
  return within && !within.includes(organization_id) ? [] : [organization_id];
};

/** Where the entries are by person, organization and kind: the index that has all of these conditions before the time. */
export const toPlace = (filter: AuditFilter): Place => {
  const { resource_type, action, build_reason, user_ids } = filter;
  const kind: WantedKind = [resource_type, action, build_reason];
  const organizations = selectOrganizations(filter);
  const where = { column: "organization_id", ...(organizations && { values: organizations }) };
  if (user_ids) {
    const who = { column: "user_id", values: [...new Set(user_ids)] };
    return { index: "audit_logs_user", leading: [who, where], kind };
  }
  if (organizations) return { index: "audit_logs_organization", leading: [where], kind };
  if (kind.some((part) => part !== undefined)) return { index: "audit_logs_kind", leading: [], kind };
  return { index: "audit_logs_time", leading: [] };
};

/** What is asked for besides the time and what these runs have to be looked at in rows. */
export const toConditions = (filter: AuditFilter, runs: readonly Run[]): Condition[] => {
  const known = new Set(runs.flatMap(({ where }) => where.map(([column]) => column)));
  const { leading, kind = [] } = toPlace(filter);
  const all = [
    ...listThingRuns(filter).flatMap(({ where }) => where.map(([column, value]) => ({ column, values: [value] }))),
    ...leading.flatMap(({ column, values }) => (values ? [{ column, values }] : [])),
    ...kind.flatMap((value, n) => (value === undefined ? [] : [{ column: KIND[n] as string, values: [value] }])),
  ];
  return all.filter(({ column }) => !known.has(column));
};

/** A place in an index between its entries, by kind and time: a walk through kinds, greatest first, goes on below it. */
export type Bound = readonly [...Kind, time: number];

/** Before and after every time there is. */
export const NEVER = 9e15;
/** Above every word there is, as SQLite compares them. */
const LAST = "\u{10ffff}";

const above = ([type = LAST, action = LAST, reason = LAST]: readonly string[]): Bound => [type, action, reason, NEVER];
const below = ([type = "", action = "", reason = ""]: readonly string[]): Bound => [type, action, reason, -NEVER];

/** Where a walk begins. */
export const firstBound = (wanted: WantedKind): Bound => {
  const free = wanted.indexOf(undefined);
  return above(wanted.slice(0, free === -1 ? wanted.length : free) as string[]);
};

/** What to do with a kind that a walk has come to: whether it is wanted, and where to look next; no bound ends the walk. */
export const nextStep = (wanted: WantedKind, found: Kind): { matches: boolean; bound?: Bound } => {
  const wrong = found.findIndex((value, n) => wanted[n] !== undefined && wanted[n] !== value);
  if (wrong === -1) {
    const last = wanted.lastIndexOf(undefined);
    return last === -1 ? { matches: true } : { matches: true, bound: below(found.slice(0, last + 1)) };
  }
  const before = found.slice(0, wrong);
  const value = wanted[wrong] as string;
  if ((found[wrong] as string) > value) return { matches: false, bound: above([...before, value]) };
  return wrong === 0 ? { matches: false } : { matches: false, bound: below(before) };
};
