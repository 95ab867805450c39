// Everything mutable that a displayed workspace depends on, as one short text from a single read: if it is unchanged, the cached answer is
// still valid. Handwritten because it is the hottest read.
import type { Acl } from "#schema/workspaces/acl.ts";
import type { Query, Value } from "../engine/sql.ts";

/** The columns for the access check, and the stamp. */
export type WorkspaceStamp = {
  readonly id: string;
  readonly owner_id: string;
  readonly organization_id: string;
  readonly deleted: boolean;
  readonly user_acl: Acl;
  readonly group_acl: Acl;
  readonly stamp: string;
};

// Workspaces, their builds and jobs increment `version` with every change. Agents' reports are in their own rows.
const SQL = `select w.id, w.owner_id, w.organization_id, w.deleted, w.user_acl, w.group_acl,
  w.version || ' ' || w.updated_at || ' ' || w.last_used_at || ' ' || w.favorite || ' ' || w.latest_build_id
  || ' ' || t.updated_at || ' ' || t.active_version_id || ' ' || u.updated_at || ' ' || o.updated_at
  || ' ' || (select coalesce(max(v.updated_at), 0) from workspace_builds b
      join template_versions v on v.id = b.template_version_id where b.id = w.latest_build_id)
  || ' ' || (select coalesce(max(i.updated_at), 0) from workspace_builds b
      join users i on i.id = b.initiator_id where b.id = w.latest_build_id),
  case w.user_acl when '{}' then 0 else (select coalesce(max(s.updated_at), 0) from json_each(w.user_acl) e
      join users s on s.id = e.key) end,
  case w.group_acl when '{}' then '' else (select cast(count(*) as text) || '.' || cast(coalesce(max(g.updated_at), 0) as text)
      from json_each(w.group_acl) e join groups g on g.id = e.key) end,
  (select group_concat(a.updated_at || ',' || coalesce(cast(a.last_connected_at as text), '') || ',' || coalesce(cast(a.disconnected_at as text), '')
      || ',' || a.lifecycle_state || ',' || coalesce(cast(a.ready_at as text), '') || ',' || a.logs_length || ',' || a.logs_overflowed
      || ',' || a.api_version || ',' || a.latency
      || ',' || coalesce((select group_concat(p.health) from agent_apps p where p.agent_id = a.id), '')
      || ',' || coalesce((select group_concat(coalesce(s.status, '') || coalesce(cast(s.exit_code as text), ''))
          from agent_scripts s where s.agent_id = a.id), '')
      || ',' || coalesce((select max(m.collected_at) || '.' || total(m.collected_at) from agent_metadata m
          where m.agent_id = a.id), '')
      || ',' || (select count(*) from agent_log_sources l where l.agent_id = a.id))
    from agents a where a.build_id = w.latest_build_id)
  from workspaces w
  join templates t on t.id = w.template_id
  join users u on u.id = w.owner_id
  join organizations o on o.id = w.organization_id`;

const SELECT_ONE = `${SQL} where w.id = ?`;
const SELECT_SEVERAL = `${SQL} where w.id in (select value from json_each(?))`;

const EMPTY_ACL: Acl = {};
const parseAcl = (value: Value | undefined): Acl => (value === "{}" ? EMPTY_ACL : (JSON.parse(value as string) as Acl));

const map = (row: Value[]): WorkspaceStamp => ({
  id: row[0] as string,
  owner_id: row[1] as string,
  organization_id: row[2] as string,
  deleted: row[3] === 1,
  user_acl: parseAcl(row[4]),
  group_acl: parseAcl(row[5]),
  stamp: `${row[6]} ${row[7]} ${row[8]} ${row[9] ?? ""}`,
});

export const findWorkspaceStamp = (id: string): Query<WorkspaceStamp> => ({ sql: SELECT_ONE, params: [id], map });

/** The stamps of several workspaces, unordered. For `scan`. */
export const listWorkspaceStamps = (ids: readonly string[]): Query<WorkspaceStamp> => ({
  sql: SELECT_SEVERAL,
  params: [JSON.stringify(ids)],
  map,
});
