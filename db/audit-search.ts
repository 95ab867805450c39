// Pages of the audit log, newest first. A filter is read from the one index that it is best at and the rest of it is looked at in the
// rows found there, whatever SQLite would guess: at five million entries a wrong guess takes seconds (rule AU-11). For `store.scan`.
import { and, desc, eq, getTableColumns, inArray, lt, or, type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import type { AuditAction, ResourceType } from "#schema/audit.ts";
import { audit_logs } from "./schema/audit.ts";
import { chats } from "./schema/chats.ts";
import { model_configs, model_providers } from "./schema/models.ts";
import { provisioner_keys } from "./schema/provisioners.ts";
import { template_versions, templates } from "./schema/templates.ts";
import { api_keys, organization_members, organizations, users } from "./schema/users.ts";
import { workspaces } from "./schema/workspaces.ts";
import { build, type Query, query, type RowOfQuery, statement } from "./sql.ts";

export type AuditRow = typeof audit_logs.$inferSelect;

/** How far matching entries are counted. */
export const COUNT_CAP = 2_000;

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

/** The last entry that was seen. */
export type AuditCursor = { readonly time: number; readonly key: number };

/** A condition and the column that has an index for it; the best first. */
const conditions = (filter: AuditFilter): { column: SQL; is: (column: SQL) => SQL }[] => {
  const { resource_type, action, user_ids, organization_id, within } = filter;
  const list = (values: readonly string[]) => (column: SQL) =>
    values.length === 1 ? sql`${column} = ${values[0]}` : sql`${column} in ${[...values]}`;
  const one = (column: unknown, value: string | undefined) =>
    value === undefined ? [] : [{ column: sql`${column}`, is: (known: SQL) => sql`${known} = ${value}` }];
  return [
    ...one(audit_logs.request_id, filter.request_id),
    ...one(audit_logs.resource_id, filter.resource_id),
    ...one(sql`lower(${audit_logs.resource_target})`, filter.resource_target?.toLowerCase()),
    ...(user_ids ? [{ column: sql`${audit_logs.user_id}`, is: list(user_ids) }] : []),
    ...one(audit_logs.build_reason, filter.build_reason),
    ...one(audit_logs.resource_type, resource_type),
    ...one(audit_logs.action, action),
    ...one(audit_logs.organization_id, organization_id),
    ...(within ? [{ column: sql`${audit_logs.organization_id}`, is: list(within) }] : []),
  ];
};

/** `+column` is the same value, and no index is used for it. */
const without = (column: SQL): SQL => sql`+${column}`;

const matching = (filter: AuditFilter): SQL | undefined => {
  const all = conditions(filter);
  // Kind and action stand in one index together.
  const pairs = filter.resource_type !== undefined && filter.action !== undefined;
  const leading = pairs && isTypeFirst(filter) ? 2 : 1;
  const reason = filter.build_reason === undefined ? undefined : sql`${audit_logs.build_reason} <> ''`;
  return and(
    ...all.map(({ column, is }, index) => is(index < leading ? column : without(column))),
    reason,
    filter.from === undefined ? undefined : sql`${audit_logs.time} >= ${filter.from}`,
    filter.to === undefined ? undefined : sql`${audit_logs.time} <= ${filter.to}`,
  );
};

/** Nothing better is asked for than the kind of thing. */
const isTypeFirst = ({ request_id, resource_id, resource_target, user_ids, build_reason }: AuditFilter): boolean =>
  [request_id, resource_id, resource_target, user_ids, build_reason].every((one) => one === undefined);

const after = ({ time, key }: AuditCursor): SQL | undefined =>
  and(sql`${audit_logs.time} <= ${time}`, or(sql`+${audit_logs.time} < ${time}`, lt(audit_logs.key, key)));

const newestFirst = [desc(audit_logs.time), desc(audit_logs.key)] as const;

const owners = alias(users, "owners");

/** What a row is shown with: who did it, where, and what has become of the thing since. */
const shownColumns = {
  entry: getTableColumns(audit_logs),
  user: getTableColumns(users),
  organization: {
    id: organizations.id,
    name: organizations.name,
    display_name: organizations.display_name,
    icon: organizations.icon,
  },
  workspace: { name: workspaces.name, deleted: workspaces.deleted },
  owner: { username: owners.username },
  /** 1 when it is gone; null for kinds that are not looked up. */
  gone: sql<number | null>`case ${audit_logs.resource_type}
    when 'user' then not exists (select 1 from ${users} x where x.id = ${audit_logs.resource_id} and not x.deleted)
    when 'organization' then not exists (select 1 from ${organizations} x where x.id = ${audit_logs.resource_id} and not x.deleted)
    when 'template' then not exists (select 1 from ${templates} x where x.id = ${audit_logs.resource_id} and not x.deleted)
    when 'template_version' then not exists (select 1 from ${template_versions} x where x.id = ${audit_logs.resource_id})
    when 'chat' then not exists (select 1 from ${chats} x where x.id = ${audit_logs.resource_id})
    when 'ai_provider' then not exists (select 1 from ${model_providers} x where x.id = ${audit_logs.resource_id} and not x.deleted)
    when 'ai_model' then not exists (select 1 from ${model_configs} x where x.id = ${audit_logs.resource_id} and not x.deleted)
    when 'provisioner_key' then not exists (select 1 from ${provisioner_keys} x where x.id = ${audit_logs.resource_id})
    when 'organization_member' then not exists (select 1 from ${organization_members} x
      where x.organization_id = ${audit_logs.organization_id} and x.user_id = ${audit_logs.resource_id})
    when 'api_key' then json_extract(${audit_logs.additional_fields}, '$.key_id') is not null
      and not exists (select 1 from ${api_keys} x where x.id = json_extract(${audit_logs.additional_fields}, '$.key_id'))
    end`.as("gone"),
} as const;

const shown = (keys: SQL) =>
  query(
    build
      .select(shownColumns)
      .from(audit_logs)
      .leftJoin(users, eq(users.id, audit_logs.user_id))
      .leftJoin(organizations, eq(organizations.id, audit_logs.organization_id))
      .leftJoin(workspaces, eq(workspaces.id, audit_logs.workspace_id))
      .leftJoin(owners, eq(owners.id, workspaces.owner_id))
      .where(keys)
      .orderBy(...newestFirst),
  )();

export type ShownEntry = RowOfQuery<typeof shown>;

/** Newest first; with a cursor, those after it. */
export const pageOfAudit = (
  filter: AuditFilter,
  { limit, offset = 0, cursor }: { limit: number; offset?: number; cursor?: AuditCursor | undefined },
): Query<ShownEntry> => shown(sql`${audit_logs.key} in (${keysOf(filter, cursor, limit, offset)})`);

/** Several organizations, or people of one name, are each read in their order and then merged: together they would have to be sorted. */
const keysOf = (filter: AuditFilter, cursor: AuditCursor | undefined, limit: number, offset: number): SQL => {
  const { within = [], user_ids = [] } = filter;
  const page = (one: AuditFilter, most: number, from: number) =>
    build
      .select({ key: audit_logs.key, time: audit_logs.time })
      .from(audit_logs)
      .where(and(matching(one), cursor && after(cursor)))
      .orderBy(...newestFirst)
      .limit(most)
      .offset(from);
  const parts =
    user_ids.length > 1
      ? user_ids.map((id) => ({ ...filter, user_ids: [id] }))
      : within.length > 1 && conditions(filter).length === 1
        ? within.map((id) => ({ ...filter, within: [id] }))
        : [];
  if (parts.length === 0) return sql`select "key" from (${page(filter, limit, offset)})`;
  const each = parts.map(
    (part) => sql`select * from (${page(part, Math.min(limit + offset, Number.MAX_SAFE_INTEGER), 0)})`,
  );
  return sql`select "key" from (${sql.join(each, sql` union all `)}) order by "time" desc, "key" desc limit ${limit} offset ${offset}`;
};

/** How many match, as far as one above COUNT_CAP. */
export const countAudit = (filter: AuditFilter): Query<{ count: number }> => {
  const { sql: text, params } = build
    .select({ key: audit_logs.key })
    .from(audit_logs)
    .where(matching(filter))
    .limit(COUNT_CAP + 1)
    .toSQL();
  return {
    sql: `select count(*) from (${text})`,
    params: params as Query<unknown>["params"],
    map: ([count]) => ({ count: Number(count) }),
  };
};

/** Where a page begins: {id}. */
export const findAuditCursor = query(
  build
    .select({ time: audit_logs.time, key: audit_logs.key })
    .from(audit_logs)
    .where(eq(audit_logs.id, sql.placeholder("id"))),
);

/** Ids of everybody who has or had this username, or this e-mail address; deleted users, too. For `scan`. */
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

/** Entries of a kind that are older, for retention: {resource_type, action, before}. */
const old = and(
  eq(audit_logs.resource_type, sql.placeholder("resource_type")),
  eq(audit_logs.action, sql.placeholder("action")),
  lt(audit_logs.time, sql.placeholder("before")),
);
export const findOldAudit = query(build.select({ key: audit_logs.key }).from(audit_logs).where(old).limit(1));

/** A slice of them, small enough that nobody waits for it. */
export const deleteOldAudit = statement<{ resource_type: ResourceType; action: AuditAction; before: number }>(
  build
    .delete(audit_logs)
    .where(inArray(audit_logs.key, build.select({ key: audit_logs.key }).from(audit_logs).where(old).limit(200))),
);
