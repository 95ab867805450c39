// Conditions of a workspace search on the row `w` (facts/platform 3.3). Agent status and health are derived in SQL as in
// actors/agent/status.ts; a test compares the two. Used by db/workspaces/lists.ts.
import { EVERYONE } from "#schema/workspaces/acl.ts";
import type { Value } from "../engine/sql.ts";

/**
 * Which workspaces the caller may see: all, or those of some organizations, their own, and those shared with them where they are a member;
 * `only` restricts that to a single one.
 */
export type Scope =
  | "all"
  | {
      readonly user_id: string;
      readonly organizations: readonly string[];
      readonly member_of: readonly string[];
      readonly groups: readonly string[];
      readonly only?: string | undefined;
    };

export type WorkspaceFilter = {
  readonly scope: Scope;
  /** Milliseconds since 1970, for conditions that depend on time. */
  readonly now: number;
  /** Milliseconds of silence after which an agent is considered disconnected. */
  readonly silence_ms: number;
  readonly ids?: readonly string[];
  readonly owner_id?: string;
  readonly owner?: string;
  readonly template?: string;
  readonly organization?: string;
  readonly name?: string;
  readonly status?: string;
  readonly has_agent?: readonly string[];
  readonly dormant: boolean;
  readonly last_used_after?: number;
  readonly last_used_before?: number;
  readonly outdated?: boolean;
  readonly healthy?: boolean;
  /** From the latest build's template version. */
  readonly has_ai_task?: boolean;
  readonly has_external_agent?: boolean;
  readonly shared?: boolean;
  /** A user's id or name. */
  readonly shared_with_user?: string;
  /** A group: its id, its name, or organization/name. */
  readonly shared_with_group?: string;
  readonly parameters?: readonly { readonly name: string; readonly value?: string }[];
};

/** A condition with the parameters of its question marks. */
export type SqlCondition = { readonly sql: string; readonly params: readonly Value[] };

const toCondition = (sql: string, ...params: Value[]): SqlCondition => ({ sql, params });
const toJsonArray = (values: readonly string[]): string => JSON.stringify(values);
const IN_LIST = "in (select value from json_each(?))";

const agentStatus = ({ now, silence_ms }: WorkspaceFilter): SqlCondition =>
  toCondition(
    `case
  when a.first_connected_at is null or a.last_connected_at is null then case
    when a.connection_timeout_seconds > 0 and ? - a.created_at > a.connection_timeout_seconds * 1000 then 'timeout'
    else 'connecting' end
  when a.disconnected_at >= a.last_connected_at then 'disconnected'
  when ? - a.last_connected_at > ? then 'disconnected'
  else 'connected' end`,
    now,
    now,
    silence_ms,
  );

const FROM_LATEST_AGENTS = "from agents a where a.build_id = w.latest_build_id";

/** Only running workspaces have agents that are shown. */
const hasUnhealthyAgent = (filter: WorkspaceFilter): SqlCondition => {
  const status = agentStatus(filter);
  return toCondition(
    `(+w.status = 'running' and exists (select 1 ${FROM_LATEST_AGENTS} and a.parent_id is null and (a.lifecycle_state in
    ('start_error', 'shutting_down', 'shutdown_timeout', 'shutdown_error', 'off')
    or ${status.sql} in ('timeout', 'disconnected'))))`,
    ...status.params,
  );
};

const hasVersionFlag = (column: "has_ai_task" | "has_external_agent", yes: boolean): SqlCondition =>
  toCondition(
    `(select v.${column} from workspace_builds b join template_versions v on v.id = b.template_version_id
  where b.id = w.latest_build_id) = ?`,
    yes ? 1 : 0,
  );

/** Must repeat the definition of the index `workspaces_shared` word for word to use it. */
const isShared = (row: string): string => `(${row}.user_acl <> '{}' or ${row}.group_acl <> '{}')`;

/** The group of all members has the organization's ID (rule SH-3). */
const isSharedWithGroup = (text: string): SqlCondition[] => {
  const [first = "", second] = text.toLowerCase().split("/");
  const name = second ?? first;
  return [
    toCondition(`${isShared("w")} and w.group_acl <> '{}'`),
    ...(second === undefined
      ? []
      : [
          toCondition(
            "w.organization_id in (select o.id from organizations o where lower(o.name) = ? or o.id = ?)",
            first,
            first,
          ),
        ]),
    ...(name === EVERYONE.toLowerCase()
      ? [toCondition("exists (select 1 from json_each(w.group_acl) e where e.key = w.organization_id)")]
      : [
          toCondition(
            `exists (select 1 from json_each(w.group_acl) e where e.key = ? or e.key in
  (select g.id from groups g where g.organization_id = w.organization_id and lower(g.name) = ?))`,
            name,
            name,
          ),
        ]),
  ];
};

const isSharedWithUser = (who: string): SqlCondition =>
  toCondition(
    `${isShared("w")} and exists (select 1 from json_each(w.user_acl) e
  join users su on su.id = e.key where su.deleted = 0 and (su.id = ? or lower(su.username) = lower(?)))`,
    who,
    who,
  );

/** The caller's own workspaces and those shared with them, using indexes. */
const isOwnOrShared = ({ user_id, member_of, groups }: Exclude<Scope, "all">): SqlCondition =>
  toCondition(
    `w.id in (select own.id from workspaces own where own.owner_id = ? union all
  select s.id from workspaces s where s.organization_id ${IN_LIST} and ${isShared("s")}
  and (s.user_acl ->> ? is not null or exists (select 1 from json_each(s.group_acl) e where e.key ${IN_LIST})))`,
    user_id,
    toJsonArray(member_of),
    user_id,
    toJsonArray(groups),
  );

const andConditions = (a: SqlCondition, b: SqlCondition): SqlCondition =>
  toCondition(`${a.sql} and ${b.sql}`, ...a.params, ...b.params);

/** Returns what the caller may see as mutually exclusive conditions: everything in some organizations, and their other workspaces. */
export const toScopes = ({ scope, ...filter }: WorkspaceFilter): SqlCondition[] => {
  if (scope === "all") return [toCondition("true")];
  const { organizations, only } = scope;
  const own =
    only === undefined ? isOwnOrShared(scope) : andConditions(isOwnOrShared(scope), toCondition("w.id = ?", only));
  if (organizations.length === 0) return [own];
  const managed = toJsonArray(organizations);
  const others = toCondition(
    `${own.sql} and +w.organization_id not in (select value from json_each(?))`,
    ...own.params,
    managed,
  );
  return [toCondition(`${isNarrow({ scope, ...filter }) ? "+" : ""}w.organization_id ${IN_LIST}`, managed), others];
};

/** Returns the conditions of `toScopes` as one condition. */
export const toScope = (filter: WorkspaceFilter): SqlCondition => {
  const parts = toScopes(filter);
  const [first = toCondition("false")] = parts;
  if (parts.length === 1) return first;
  // Used only as a filter: with plain columns, the planner might start with it.
  const seen = parts.map(({ sql }) => `(${sql.replace(/^w\.organization_id/, "+w.organization_id")})`);
  return toCondition(`(${seen.join(" or ")})`, ...parts.flatMap(({ params }) => params));
};

/** Returns whether few rows match, so that they should be found first. The status alone does not qualify. */
export const isNarrow = (filter: WorkspaceFilter): boolean =>
  (filter.scope !== "all" && filter.scope.organizations.length === 0) ||
  NARROW_FILTERS.some((key) => filter[key] !== undefined) ||
  filter.shared === true ||
  filter.dormant;

const NARROW_FILTERS = [
  ...(["ids", "owner_id", "owner", "template", "last_used_after", "last_used_before"] as const),
  ...(["shared_with_user", "shared_with_group"] as const),
];

/** Returns all conditions except access; never empty. A unary plus keeps SQLite from starting with that column. */
export const toConditions = (filter: WorkspaceFilter): SqlCondition[] => {
  const ifDefined = <T>(value: T | undefined, make: (value: T) => SqlCondition | SqlCondition[]): SqlCondition[] =>
    value === undefined ? [] : [make(value)].flat();
  const { status } = filter;
  return [
    // Deleted workspaces are listed only on request.
    ...(status === "deleted" ? [] : [toCondition("w.deleted = 0")]),
    toCondition(filter.dormant ? "w.dormant_at is not null" : "w.dormant_at is null"),
    ...ifDefined(status, (text) => toCondition(`${isNarrow(filter) ? "+" : ""}w.status = ?`, text)),
    ...ifDefined(filter.ids, (ids) => toCondition(`w.id ${IN_LIST}`, toJsonArray(ids))),
    ...ifDefined(filter.owner_id, (id) => toCondition("w.owner_id = ?", id)),
    ...ifDefined(filter.owner, (name) =>
      toCondition("w.owner_id in (select n.id from users n where lower(n.username) = lower(?))", name),
    ),
    ...ifDefined(filter.template, (name) =>
      toCondition("w.template_id in (select t.id from templates t where lower(t.name) = lower(?))", name),
    ),
    ...ifDefined(filter.organization, (name) =>
      toCondition(
        "w.organization_id in (select o.id from organizations o where o.id = ? or lower(o.name) = lower(?))",
        name,
        name,
      ),
    ),
    ...ifDefined(filter.name, (text) => toCondition("instr(lower(w.name), lower(?)) > 0", text)),
    ...ifDefined(filter.has_agent, (statuses) => {
      const status = agentStatus(filter);
      const hasAgent = `+w.status = 'running' and exists (select 1 ${FROM_LATEST_AGENTS} and ${status.sql} ${IN_LIST})`;
      return toCondition(hasAgent, ...status.params, toJsonArray(statuses));
    }),
    ...ifDefined(filter.last_used_after, (at) => toCondition("w.last_used_at > ?", at)),
    ...ifDefined(filter.last_used_before, (at) => toCondition("w.last_used_at < ?", at)),
    ...ifDefined(filter.outdated, (yes) =>
      toCondition(
        `(select b.template_version_id from workspace_builds b where b.id = w.latest_build_id)
  ${yes ? "<>" : "="} (select t.active_version_id from templates t where t.id = w.template_id)`,
      ),
    ),
    ...ifDefined(filter.has_ai_task, (yes) => hasVersionFlag("has_ai_task", yes)),
    ...ifDefined(filter.has_external_agent, (yes) => hasVersionFlag("has_external_agent", yes)),
    ...ifDefined(filter.healthy, (yes) => {
      const isUnhealthy = hasUnhealthyAgent(filter);
      return yes ? toCondition(`not ${isUnhealthy.sql}`, ...isUnhealthy.params) : isUnhealthy;
    }),
    ...ifDefined(filter.shared, (yes) => toCondition(yes ? isShared("w") : `not ${isShared("w")}`)),
    ...ifDefined(filter.shared_with_user, isSharedWithUser),
    ...ifDefined(filter.shared_with_group, isSharedWithGroup),
    ...(filter.parameters ?? []).map(({ name, value }) => {
      const hasValue = value === undefined ? "" : "and lower(p.value) = lower(?)";
      const hasParameter = `exists (select 1 from workspace_build_parameters p
  where p.build_id = w.latest_build_id and lower(p.name) = lower(?) ${hasValue})`;
      return toCondition(hasParameter, name, ...(value === undefined ? [] : [value]));
    }),
  ];
};
