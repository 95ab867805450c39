// Lists and searches of workspaces: one select with the filters of facts/platform 3.3, run on a reader Worker. Agent status and
// health are derived in SQL as actors/agent/status.ts derives them in code; a test compares the two.
import { and, asc, desc, eq, gt, inArray, isNull, lt, or, type SQL, sql } from "drizzle-orm";
import { EVERYONE } from "#schema/acl.ts";
import { jobs } from "./schema/jobs.ts";
import { template_versions, templates } from "./schema/templates.ts";
import { organizations, users } from "./schema/users.ts";
import { workspace_build_parameters, workspace_builds, workspaces } from "./schema/workspaces.ts";
import { build, type Query, query } from "./sql.ts";
import { isLatest, selectViews, type WorkspaceView } from "./workspace-views.ts";

/** Which workspaces the caller may see: all, or those of some organizations, one's own, and those shared where one is a member. */
export type Scope =
  | "all"
  | { readonly user_id: string; readonly organizations: readonly string[]; readonly member_of: readonly string[] };

export type WorkspaceFilter = {
  readonly scope: Scope;
  /** Organizations whose templates the caller may read; undefined means all. */
  readonly templates_of?: readonly string[];
  /** Milliseconds since 1970, for what depends on the time. */
  readonly now: number;
  /** Milliseconds of silence after which an agent counts as disconnected. */
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
  /** False: nothing matches, as for a key that nothing has yet. */
  readonly possible?: boolean;
  readonly shared?: boolean;
  /** A user's id or name. */
  readonly shared_with_user?: string;
  /** A group: its id, its name, or organization/name. */
  readonly shared_with_group?: string;
  readonly parameters?: readonly { readonly name: string; readonly value?: string }[];
};

const succeeded = and(eq(jobs.error, ""), isNull(jobs.canceled_at), sql`${jobs.completed_at} is not null`);
const open = isNull(jobs.completed_at);
const is = (transition: "start" | "stop" | "delete"): SQL => eq(workspace_builds.transition, transition);
const works = and(open, eq(jobs.error, ""), isNull(jobs.canceled_at), sql`${jobs.started_at} is not null`);

/** The build statuses as conditions on the latest build and its job (facts/platform 2.1). */
const STATUS: Readonly<Record<string, SQL | undefined>> = {
  pending: and(open, eq(jobs.error, ""), isNull(jobs.canceled_at), isNull(jobs.started_at)),
  starting: and(is("start"), works),
  stopping: and(is("stop"), works),
  deleting: and(is("delete"), works),
  running: and(is("start"), succeeded),
  stopped: and(is("stop"), succeeded),
  deleted: and(is("delete"), succeeded),
  canceling: and(open, eq(jobs.error, ""), sql`${jobs.canceled_at} is not null`),
  canceled: and(eq(jobs.error, ""), sql`${jobs.canceled_at} is not null and ${jobs.completed_at} is not null`),
  failed: sql`${jobs.error} <> ''`,
};

const agentStatus = (now: number, silence: number): SQL => sql`case
  when a.first_connected_at is null or a.last_connected_at is null then case
    when a.connection_timeout_seconds > 0 and ${now} - a.created_at > a.connection_timeout_seconds * 1000 then 'timeout'
    else 'connecting' end
  when a.disconnected_at >= a.last_connected_at then 'disconnected'
  when ${now} - a.last_connected_at > ${silence} then 'disconnected'
  else 'connected' end`;

const shownAgents = sql`from agents a where a.build_id = ${workspace_builds.id}`;

const hasUnhealthyAgent = ({ now, silence_ms }: WorkspaceFilter): SQL => sql`exists (select 1 ${shownAgents}
  and a.parent_id is null and (a.lifecycle_state in
    ('start_error', 'shutting_down', 'shutdown_timeout', 'shutdown_error', 'off')
    or ${agentStatus(now, silence_ms)} in ('timeout', 'disconnected')))`;

const lower = (column: SQL | Parameters<typeof eq>[0], text: string): SQL => sql`lower(${column}) = lower(${text})`;

/** As the index `workspaces_shared` has it, which it must repeat word by word to be of use. */
const IS_SHARED = sql.raw("(s.user_acl <> '{}' or s.group_acl <> '{}')");

/** Ids of what is shared with a user who is a member there; the JSON has ids as keys. */
const sharedWith = (user_id: string, member_of: readonly string[]): SQL => sql`select s.id from workspaces s
  where s.organization_id in ${[...member_of, ""]} and ${IS_SHARED}
  and (s.user_acl ->> ${user_id} is not null or s.group_acl ->> s.organization_id is not null)`;

const isShared = sql`(${workspaces.user_acl} <> '{}' or ${workspaces.group_acl} <> '{}')`;

const sharedWithUser = (who: string): SQL => sql`exists (select 1 from json_each(${workspaces.user_acl}) e
  join users su on su.id = e.key where su.deleted = 0 and (su.id = ${who} or lower(su.username) = lower(${who})))`;

/** The one group of an organization has all of its members; its id is the organization's (rule SH-3). */
const sharedWithGroup = (text: string): SQL | undefined => {
  const [first = "", second] = text.toLowerCase().split("/");
  const name = second ?? first;
  return and(
    sql`${workspaces.group_acl} <> '{}'`,
    second === undefined
      ? undefined
      : sql`(lower(${organizations.name}) = ${first} or ${workspaces.organization_id} = ${first})`,
    name === EVERYONE.toLowerCase()
      ? undefined
      : sql`exists (select 1 from json_each(${workspaces.group_acl}) e where e.key = ${name})`,
  );
};

/** Own and shared ones come by their indexes, which SQLite does not use for the parts of an `or` that has all of an organization. */
const inScope = (scope: Exclude<Scope, "all">, evenDeleted: boolean): SQL | undefined => {
  const { user_id, organizations, member_of } = scope;
  const shared = sharedWith(user_id, member_of);
  if (organizations.length === 0) {
    const alive = evenDeleted ? sql`` : sql`and o.deleted = 0`;
    return sql`${workspaces.id} in (select o.id from workspaces o where o.owner_id = ${user_id} ${alive} union all ${shared})`;
  }
  return or(
    eq(workspaces.owner_id, user_id),
    inArray(workspaces.organization_id, [...organizations]),
    sql`${workspaces.id} in (${shared})`,
  );
};

const visible = ({ scope, templates_of, status }: WorkspaceFilter): (SQL | undefined)[] => [
  scope === "all" ? undefined : inScope(scope, status === "deleted"),
  templates_of ? inArray(templates.organization_id, [...templates_of, ""]) : undefined,
];

const conditions = (filter: WorkspaceFilter): SQL | undefined => {
  const { ids, owner_id, owner, template, organization, name, status, has_agent } = filter;
  const given = <T>(value: T | undefined, make: (value: T) => SQL | undefined): SQL | undefined =>
    value === undefined ? undefined : make(value);
  const parameters = (filter.parameters ?? []).map(
    (wanted) => sql`exists (select 1 from ${workspace_build_parameters} p where p.build_id = ${workspace_builds.id}
      and lower(p.name) = lower(${wanted.name})
      ${wanted.value === undefined ? sql`` : sql`and lower(p.value) = lower(${wanted.value})`})`,
  );
  return and(
    ...visible(filter),
    filter.possible === false ? sql`0` : undefined,
    status === "deleted" ? undefined : eq(workspaces.deleted, false),
    filter.dormant ? sql`${workspaces.dormant_at} is not null` : isNull(workspaces.dormant_at),
    given(ids, (list) => inArray(workspaces.id, [...list, ""])),
    given(owner_id, (id) => eq(workspaces.owner_id, id)),
    given(owner, (text) => lower(users.username, text)),
    given(template, (text) => lower(templates.name, text)),
    given(organization, (text) => or(eq(organizations.id, text), lower(organizations.name, text))),
    given(name, (text) => sql`instr(lower(${workspaces.name}), lower(${text})) > 0`),
    given(status, (text) => STATUS[text] ?? sql`0`),
    given(has_agent, (list) =>
      and(
        is("start"),
        succeeded,
        sql`exists (select 1 ${shownAgents} and ${agentStatus(filter.now, filter.silence_ms)} in ${[...list, ""]})`,
      ),
    ),
    given(filter.last_used_after, (at) => gt(workspaces.last_used_at, at)),
    given(filter.last_used_before, (at) => lt(workspaces.last_used_at, at)),
    given(filter.outdated, (yes) =>
      yes
        ? sql`${workspace_builds.template_version_id} <> ${templates.active_version_id}`
        : eq(workspace_builds.template_version_id, templates.active_version_id),
    ),
    given(filter.healthy, (yes) =>
      yes
        ? sql`not (${and(is("start"), succeeded)} and ${hasUnhealthyAgent(filter)})`
        : and(is("start"), succeeded, hasUnhealthyAgent(filter)),
    ),
    given(filter.shared, (yes) => (yes ? isShared : sql`not ${isShared}`)),
    given(filter.shared_with_user, sharedWithUser),
    given(filter.shared_with_group, sharedWithGroup),
    ...parameters,
  );
};

export type Order = { readonly viewer_id: string; readonly limit: number; readonly offset: number };

/** A page in the order of facts/platform 3.3: the viewer's favourites, what runs, then owner and name. */
export const listWorkspaces = (filter: WorkspaceFilter, { viewer_id, limit, offset }: Order): Query<WorkspaceView> =>
  query(
    selectViews(isLatest)
      .where(conditions(filter))
      .orderBy(
        desc(sql`${workspaces.favorite} = 1 and ${workspaces.owner_id} = ${viewer_id}`),
        desc(sql`${and(is("start"), succeeded)}`),
        asc(sql`lower(${users.username})`),
        asc(sql`lower(${workspaces.name})`),
      )
      .limit(limit)
      .offset(offset),
  )();

/** How many match, on all pages together. */
export const countWorkspaces = (filter: WorkspaceFilter): Query<{ count: number }> =>
  query(
    build
      .select({ count: sql<number>`count(*)` })
      .from(workspaces)
      .innerJoin(workspace_builds, isLatest)
      .innerJoin(users, eq(users.id, workspaces.owner_id))
      .innerJoin(organizations, eq(organizations.id, workspaces.organization_id))
      .innerJoin(templates, eq(templates.id, workspaces.template_id))
      .innerJoin(template_versions, eq(template_versions.id, workspace_builds.template_version_id))
      .innerJoin(jobs, eq(jobs.id, workspace_builds.job_id))
      .where(conditions(filter)),
  )();
