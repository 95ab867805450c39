// Port shares: the key is workspace, agent name and port. Written by the workspace actor. Reads for callers never exceed the template's
// current maximum, even before a lowered one has reached every workspace (rule SH-12).
import { and, asc, eq, exists, or, type SQL, sql } from "drizzle-orm";
import { SHARE_LEVELS, type ShareLevel } from "#schema/workspaces/port-share.ts";
import { build, deleteBy, eqParam, findBy, query, statement } from "../engine/sql.ts";
import { agent_apps, agents } from "../schema/agents.ts";
import { port_shares } from "../schema/port-shares.ts";
import { templates } from "../schema/templates.ts";
import { workspaces } from "../schema/workspaces.ts";

const param = sql.placeholder;

export type PortShareRow = typeof port_shares.$inferSelect;

/** The level's position in the list of all levels, from closed to open. */
const rank = (
  level: typeof port_shares.share_level | typeof agent_apps.sharing_level | typeof templates.max_port_share_level,
): SQL<number> => sql`instr(${sql.raw(`'${SHARE_LEVELS.join(",")}'`)}, ${level})`;

const isAbove = sql`${rank(port_shares.share_level)} > ${rank(templates.max_port_share_level)}`;

/** Shares as callers see them, by port and agent. Parameters: {workspace_id}. */
export const listPortShares = query(
  build
    .select({
      workspace_id: port_shares.workspace_id,
      agent_name: port_shares.agent_name,
      port: port_shares.port,
      share_level:
        sql<ShareLevel>`case when ${isAbove} then ${templates.max_port_share_level} else ${port_shares.share_level} end`.as(
          "effective_level",
        ),
      protocol: port_shares.protocol,
    })
    .from(port_shares)
    .innerJoin(workspaces, eq(workspaces.id, port_shares.workspace_id))
    .innerJoin(templates, eq(templates.id, workspaces.template_id))
    .where(eqParam(port_shares.workspace_id))
    .orderBy(asc(port_shares.port), asc(port_shares.agent_name)),
);

/** Shares as stored. Parameters: {workspace_id}. */
export const listStoredPortShares = findBy(port_shares, port_shares.workspace_id);

/**
 * The condition that the user `u` may share ports of the workspace `w` while it is shared like this: {user_acl, group_acl}, both as JSON.
 * Must match `canStartStop` and `canUseWorkspace` (src/domain/access.ts) for everyone but the workspace's owner.
 */
const maySharePorts = sql`u.deleted = 0 and u.status <> 'suspended' and (
  exists (select 1 from json_each(u.roles) r where r.value = 'owner')
  or exists (select 1 from organization_members m
    where m.organization_id = w.organization_id and m.user_id = u.id and exists (
      select 1 from (
        select a.key, a.value from json_each(${param("user_acl")}) a where a.key = u.id
        union all select a.key, a.value from json_each(${param("group_acl")}) a
          where a.key = w.organization_id or a.key in (select g.group_id from group_members g where g.user_id = u.id)
      ) given where given.value = 'admin'
        or exists (select 1 from json_each(u.roles) r where r.value = 'template-admin')
        or exists (select 1 from json_each(m.roles) r where r.value in ('organization-admin', 'organization-template-admin')))))`;

/** The workspace if this user, who is not its owner, may share its ports. Parameters: {workspace_id, user_id, user_acl, group_acl}. */
export const findSharableBy = query(
  build
    .select({ id: workspaces.id })
    .from(workspaces)
    .where(
      and(
        eq(workspaces.id, param("workspace_id")),
        sql`exists (select 1 from users u, workspaces w
          where u.id = ${param("user_id")} and w.id = ${param("workspace_id")} and ${maySharePorts})`,
      ),
    ),
);

/** Ports whose sharer may not share them if the workspace is shared like this. Parameters: {workspace_id, user_acl, group_acl}. */
export const listAbandonedPortShares = query(
  build
    .select()
    .from(port_shares)
    .where(
      and(
        eqParam(port_shares.workspace_id),
        sql`${port_shares.shared_by} is not null and not exists (select 1 from users u, workspaces w
          where u.id = ${port_shares.shared_by} and w.id = ${port_shares.workspace_id} and ${maySharePorts})`,
      ),
    ),
);

/** Apps that are declared with a higher share level than the template allows. */
const hasAppAbove = exists(
  build
    .select({ one: sql`1` })
    .from(agents)
    .innerJoin(agent_apps, eq(agent_apps.agent_id, agents.id))
    .where(
      and(
        eq(agents.build_id, workspaces.latest_build_id),
        sql`${rank(agent_apps.sharing_level)} > ${rank(templates.max_port_share_level)}`,
      ),
    ),
);

/**
 * Workspaces that share a port or a declared app above their template's maximum: {template_id}; null for all templates, checking only
 * ports, since no app is open yet. For `scan`.
 */
export const listWorkspacesAboveLevel = query(
  build
    .selectDistinct({ id: workspaces.id })
    .from(workspaces)
    .innerJoin(templates, eq(templates.id, workspaces.template_id))
    .leftJoin(port_shares, eq(port_shares.workspace_id, workspaces.id))
    .where(
      and(
        or(isAbove, and(sql`cast(${sql.placeholder("template_id")} as text) is not null`, hasAppAbove)),
        sql`${templates.id} = coalesce(${sql.placeholder("template_id")}, ${templates.id})`,
      ),
    )
    .limit(10_000),
);

/** Inserts a share, or replaces that of the same agent and port. */
export const savePortShare = statement<PortShareRow>(
  build
    .insert(port_shares)
    .values({
      workspace_id: param("workspace_id"),
      agent_name: param("agent_name"),
      port: param("port"),
      protocol: param("protocol"),
      share_level: param("share_level"),
      shared_by: param("shared_by"),
    })
    .onConflictDoUpdate({
      target: [port_shares.workspace_id, port_shares.agent_name, port_shares.port],
      set: {
        protocol: sql`excluded.protocol`,
        share_level: sql`excluded.share_level`,
        shared_by: sql`excluded.shared_by`,
      },
    }),
);

export const deletePortShare = statement<Pick<PortShareRow, "workspace_id" | "agent_name" | "port">>(
  build
    .delete(port_shares)
    .where(and(eqParam(port_shares.workspace_id), eqParam(port_shares.agent_name), eqParam(port_shares.port))),
);

/** Deletes all shares of a deleted workspace. */
export const deletePortSharesByWorkspace = deleteBy(port_shares, port_shares.workspace_id);

/** A guard: rejects the batch as stale when the template's maximum has changed. Parameters: {id, level}. */
export const guardShareLevel = statement<{ id: string; level: ShareLevel }>(
  build
    .update(templates)
    .set({ max_port_share_level: sql`${templates.max_port_share_level}` })
    .where(and(eqParam(templates.id), eq(templates.max_port_share_level, param("level")))),
  { expect: 1 },
);
