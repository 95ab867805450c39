// The display data of audit log entries that find.ts has found, the users that a search refers to, page cursors, and retention.
import { and, desc, eq, getTableColumns, inArray, lt, sql } from "drizzle-orm";
import { type AnySQLiteColumn, alias } from "drizzle-orm/sqlite-core";
import type { AuditAction, ResourceType } from "#schema/audit.ts";
import { BUILD_REASONS } from "#schema/workspaces/build.ts";
import { build, eqParam, query, type RowOfQuery, statement } from "../../engine/sql.ts";
import type { Store } from "../../engine/store.ts";
import { audit_logs } from "../../schema/audit.ts";
import { chats } from "../../schema/chats.ts";
import { model_configs, model_providers } from "../../schema/models.ts";
import { provisioner_keys } from "../../schema/provisioners.ts";
import { template_versions, templates } from "../../schema/templates.ts";
import { api_keys, organization_members, organizations, users } from "../../schema/users.ts";
import { workspaces } from "../../schema/workspaces.ts";
import { type AuditSearch, findAudit } from "./find.ts";

export type AuditRow = typeof audit_logs.$inferSelect;

const orderNewestFirst = [desc(audit_logs.time), desc(audit_logs.key)] as const;

const owners = alias(users, "owners");

/** Selects a user's current memberships as the column `memberships`; the given column is their ID. */
export const selectMemberships = (user_id: AnySQLiteColumn) =>
  sql<
    string[]
  >`(select json_group_array(m.organization_id) from ${organization_members} m where m.user_id = ${user_id})`
    .mapWith((ids: string) => JSON.parse(ids) as string[])
    .as("memberships");

/** The organization of a log entry. */
export const organizationColumns = {
  id: organizations.id,
  name: organizations.name,
  display_name: organizations.display_name,
  icon: organizations.icon,
} as const;

/** Display data of a row: the author, the organization, and the current state of the entity. */
const auditColumns = {
  entry: getTableColumns(audit_logs),
  user: getTableColumns(users),
  memberships: selectMemberships(audit_logs.user_id),
  organization: organizationColumns,
  workspace: { name: workspaces.name, deleted: workspaces.deleted },
  owner: { username: owners.username },
  /** 1 if the entity no longer exists; null for kinds that are not looked up. */
  gone: sql<number | null>`case ${audit_logs.resource_type}
    when 'user' then not exists (select 1 from ${users} x where x.id = ${audit_logs.resource_id} and x.deleted = 0)
    when 'organization' then not exists (select 1 from ${organizations} x where x.id = ${audit_logs.resource_id} and x.deleted = 0)
    when 'template' then not exists (select 1 from ${templates} x where x.id = ${audit_logs.resource_id} and x.deleted = 0)
    when 'template_version' then not exists (select 1 from ${template_versions} x where x.id = ${audit_logs.resource_id})
    when 'chat' then not exists (select 1 from ${chats} x where x.id = ${audit_logs.resource_id})
    when 'ai_provider' then not exists (select 1 from ${model_providers} x where x.id = ${audit_logs.resource_id} and x.deleted = 0)
    when 'ai_model' then not exists (select 1 from ${model_configs} x where x.id = ${audit_logs.resource_id} and x.deleted = 0)
    when 'provisioner_key' then not exists (select 1 from ${provisioner_keys} x where x.id = ${audit_logs.resource_id})
    when 'organization_member' then not exists (select 1 from ${organization_members} x
      where x.organization_id = ${audit_logs.organization_id} and x.user_id = ${audit_logs.resource_id})
    when 'api_key' then json_extract(${audit_logs.additional_fields}, '$.key_id') is not null
      and not exists (select 1 from ${api_keys} x where x.id = json_extract(${audit_logs.additional_fields}, '$.key_id'))
    end`.as("gone"),
  /** The first template and version created from an uploaded file; null for other kinds and unused files. */
  made: sql<string | null>`case ${audit_logs.resource_type}
    when 'file' then (select t.name || ' ' || v.name from ${template_versions} v join ${templates} t on t.id = v.template_id
      where v.file_id = ${audit_logs.resource_id} order by v.created_at limit 1)
    end`.as("made"),
} as const;

/** The entries that findAudit has found, newest first: {keys}, a JSON array. For `scan`. */
export const listShownAudit = query(
  build
    .select(auditColumns)
    .from(audit_logs)
    .leftJoin(users, eq(users.id, audit_logs.user_id))
    .leftJoin(organizations, eq(organizations.id, audit_logs.organization_id))
    .leftJoin(workspaces, eq(workspaces.id, audit_logs.workspace_id))
    .leftJoin(owners, eq(owners.id, workspaces.owner_id))
    .where(sql`${audit_logs.key} in (select value from json_each(${sql.placeholder("keys")}))`)
    .orderBy(...orderNewestFirst),
);

export type AuditEntryView = RowOfQuery<typeof listShownAudit>;

/** Returns a page, newest first, and the number of matches if requested (find.ts). */
export const listAudit = async (
  store: Pick<Store, "scan">,
  search: AuditSearch,
): Promise<{ rows: AuditEntryView[]; count: number }> => {
  const [{ keys, count } = { keys: [], count: 0 }] = await store.scan(findAudit(search));
  const rows = keys.length === 0 ? [] : await store.scan(listShownAudit({ keys: JSON.stringify(keys) }));
  return { rows, count };
};

/** The start of a page. Parameters: {id}. */
export const findAuditCursor = query(
  build.select({ time: audit_logs.time, key: audit_logs.key }).from(audit_logs).where(eqParam(audit_logs.id)),
);

/** IDs of everyone who has or had this username or email address, including deleted users. For `scan`. */
export const listUsersCalled = query(
  build
    .select({ id: users.id })
    .from(users)
    .where(sql`lower(${users.username}) = ${sql.placeholder("name")}`),
);
export const listUsersAt = query(
  build
    .select({ id: users.id })
    .from(users)
    .where(sql`lower(${users.email}) = ${sql.placeholder("email")}`),
);

/**
 * Old entries of a kind, for retention: {resource_type, action, before}. Every reason separately, since it precedes the time in the index.
 */
const isOld = and(
  eqParam(audit_logs.resource_type),
  eqParam(audit_logs.action),
  inArray(audit_logs.build_reason, ["", ...BUILD_REASONS]),
  lt(audit_logs.time, sql.placeholder("before")),
);
export const findOldAudit = query(build.select({ key: audit_logs.key }).from(audit_logs).where(isOld).limit(1));

/** Deletes a slice small enough not to delay other writes. */
export const deleteOldAudit = statement<{ resource_type: ResourceType; action: AuditAction; before: number }>(
  build
    .delete(audit_logs)
    .where(inArray(audit_logs.key, build.select({ key: audit_logs.key }).from(audit_logs).where(isOld).limit(200))),
);
