// Workspaces as rows of a list, read on a reader Worker: all that the caller may see, or those with these IDs. Handwritten: a single
// statement for thousands of rows, including agents.
import type { Query, Value } from "../engine/sql.ts";
import { type Scope, toScope } from "./filter.ts";

/** An agent as stored; its status is derived when it is shown. Times are milliseconds since 1970. */
export type SummaryAgent = {
  readonly id: string;
  readonly name: string;
  readonly lifecycle_state: string;
  readonly created_at: number;
  readonly connection_timeout_seconds: number;
  readonly first_connected_at: number | null;
  readonly last_connected_at: number | null;
  readonly disconnected_at: number | null;
  /** Whether it has no parent. Only such agents affect a workspace's health. */
  readonly top: 0 | 1;
};

const AGENTS = `(select json_group_array(json_object('id', a.id, 'name', a.name, 'lifecycle_state', a.lifecycle_state,
    'created_at', a.created_at, 'connection_timeout_seconds', a.connection_timeout_seconds,
    'first_connected_at', a.first_connected_at, 'last_connected_at', a.last_connected_at,
    'disconnected_at', a.disconnected_at, 'top', case when a.parent_id is null then 1 else 0 end))
  from (select * from agents s where s.build_id = w.latest_build_id order by s.key) a)`;

/** The columns by their names in rows. */
const COLUMNS = {
  id: "w.id",
  name: "w.name",
  created_at: "w.created_at",
  owner_id: "w.owner_id",
  owner_name: "u.username",
  organization_id: "w.organization_id",
  organization_name: "o.name",
  template_id: "w.template_id",
  template_name: "t.name",
  template_display_name: "t.display_name",
  template_icon: "t.icon",
  template_version_id: "b.template_version_id",
  template_version_name: "v.name",
  template_active_version_id: "t.active_version_id",
  status: "w.status",
  build_id: "b.id",
  build_number: "b.build_number",
  build_created_at: "b.created_at",
  transition: "b.transition",
  reason: "b.reason",
  error: "j.error",
  deadline: "b.deadline",
  max_deadline: "b.max_deadline",
  next_start_at: "w.next_start_at",
  last_used_at: "w.last_used_at",
  dormant_at: "w.dormant_at",
  deleting_at: "w.deleting_at",
  favorite: "w.favorite",
  shared: "(w.user_acl <> '{}' or w.group_acl <> '{}')",
  agents: `case w.status when 'running' then ${AGENTS} else '[]' end`,
} as const;

export type SummaryRow = Readonly<Record<keyof typeof COLUMNS, Value>>;

const NAMES = Object.keys(COLUMNS) as (keyof typeof COLUMNS)[];
const SELECT = `select ${NAMES.map((name) => COLUMNS[name]).join(", ")}
  from workspaces w
  join workspace_builds b on b.id = w.latest_build_id
  join jobs j on j.id = b.job_id
  join template_versions v on v.id = b.template_version_id
  join templates t on t.id = w.template_id
  join users u on u.id = w.owner_id
  join organizations o on o.id = w.organization_id`;

const map = (row: Value[]): SummaryRow =>
  Object.fromEntries(NAMES.map((name, at) => [name, row[at] as Value])) as SummaryRow;

/** The existing workspaces among these that the caller may see; all of them without `ids`. For `scan`. */
export const listWorkspaceSummaries = (scope: Scope, ids?: readonly string[]): Query<SummaryRow> => {
  const idCondition = ids === undefined ? "" : "and w.id in (select value from json_each(?))";
  const idScope = ids === undefined ? {} : { ids };
  const seen = toScope({ scope, now: 0, silence_ms: 0, dormant: false, ...idScope });
  return {
    sql: `${SELECT} where w.deleted = 0 ${idCondition} and ${seen.sql}`,
    params: [...(ids === undefined ? [] : [JSON.stringify(ids)]), ...seen.params],
    map,
  };
};

/** IDs of all workspaces that the caller may see, in the order people look at them: the viewer's own first, most recently used first. */
export const listSeenWorkspaces = (scope: Scope, viewer_id: string): Query<string> => {
  const seen = toScope({ scope, now: 0, silence_ms: 0, dormant: false });
  return {
    sql: `select w.id from workspaces w where w.deleted = 0 and ${seen.sql}
      order by case when w.owner_id = ? then 0 else 1 end, w.last_used_at desc, w.id`,
    params: [...seen.params, viewer_id],
    map: ([found]) => found as string,
  };
};

/** Workspaces that display something of this template, person or organization. For `scan`. */
export const listDependentWorkspaces = (id: string): Query<string> => ({
  sql: `select w.id from workspaces w where w.deleted = 0 and w.owner_id = ?
    union select w.id from workspaces w where w.deleted = 0 and w.template_id = ?
    union select w.id from workspaces w where w.deleted = 0 and w.organization_id = ?`,
  params: [id, id, id],
  map: ([found]) => found as string,
});

/** Workspaces with an agent whose last heartbeat was in this range; milliseconds since 1970. For `scan`. */
export const listWorkspacesSilentSince = (from: number, to: number): Query<string> => ({
  sql: `select distinct w.id from workspaces w join agents a on a.build_id = w.latest_build_id
    where w.status = 'running' and w.deleted = 0 and a.last_connected_at > ? and a.last_connected_at <= ?`,
  params: [from, to],
  map: ([found]) => found as string,
});
