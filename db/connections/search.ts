// Searches the connection log on a reader Worker: a page of entries, newest first, and the number of matches. Each condition has an index
// that ends with the time, so that a page is read in order.
import { desc, eq, getTableColumns, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import type { ConnectionType } from "#schema/connections.ts";
import { build, eqParam, type Query, query, type RowOfQuery, type Value } from "../engine/sql.ts";
import type { Store } from "../engine/store.ts";
import { organizationColumns, selectMemberships } from "../reports/audit/search.ts";
import { connection_logs } from "../schema/connections.ts";
import { organizations, users } from "../schema/users.ts";
import { workspaces } from "../schema/workspaces.ts";

/** Maximum number to which matching entries are counted. */
export const MAX_CONNECTION_COUNT = 2_000;

/** Undefined members are ignored; an empty list matches nothing. */
export type ConnectionFilter = {
  readonly organization_id: string | undefined;
  readonly workspace_id: string | undefined;
  readonly owner_ids: readonly string[] | undefined;
  readonly user_ids: readonly string[] | undefined;
  readonly type: ConnectionType | undefined;
  /** The ID of an entry, or the agent's ID of the connection. */
  readonly connection_id: string | undefined;
  readonly is_open: boolean | undefined;
  /** Milliseconds since 1970, both inclusive. */
  readonly from: number | undefined;
  readonly to: number | undefined;
  /** Selects only entries of these organizations. */
  readonly within: readonly string[] | undefined;
};

export type ConnectionCursor = { readonly connect_time: number; readonly key: number };
export type ConnectionPage = {
  readonly limit: number;
  readonly offset: number;
  readonly cursor: ConnectionCursor | undefined;
};

type SqlCondition = { readonly sql: string; readonly params: readonly Value[] };
const toCondition = (sql: string, ...params: Value[]): SqlCondition => ({ sql, params });

const toConditions = (filter: ConnectionFilter): SqlCondition[] => {
  const conditions: SqlCondition[] = [];
  const addCondition = (text: string, ...params: Value[]): void => void conditions.push(toCondition(text, ...params));
  const addAnyOf = (column: string, values: readonly string[] | undefined): void => {
    if (values) addCondition(`c.${column} in (select value from json_each(?))`, JSON.stringify(values));
  };
  if (filter.organization_id !== undefined) addCondition("c.organization_id = ?", filter.organization_id);
  if (filter.workspace_id !== undefined) addCondition("c.workspace_id = ?", filter.workspace_id);
  addAnyOf("owner_id", filter.owner_ids);
  addAnyOf("user_id", filter.user_ids);
  addAnyOf("organization_id", filter.within);
  if (filter.type !== undefined) addCondition("c.type = ?", filter.type);
  if (filter.connection_id !== undefined) {
    addCondition("(c.id = ? or c.connection_id = ?)", filter.connection_id, filter.connection_id);
  }
  if (filter.is_open !== undefined) addCondition(`c.disconnect_time is ${filter.is_open ? "" : "not "}null`);
  if (filter.from !== undefined) addCondition("c.connect_time >= ?", filter.from);
  if (filter.to !== undefined) addCondition("c.connect_time <= ?", filter.to);
  return conditions;
};

const joinConditions = (parts: readonly SqlCondition[]): string =>
  ["true", ...parts.map((part) => part.sql)].join(" and ");
const listParams = (parts: readonly SqlCondition[]): Value[] => parts.flatMap(({ params }) => params);

/** A row of the result: a key, or in the first row the number of entries on all pages. */
type PageRow = { readonly key: number | null; readonly count: number };

/** Uses one statement, so that page and count are consistent. */
const selectPage = (filter: ConnectionFilter, { limit, offset, cursor }: ConnectionPage): Query<PageRow> => {
  const conditions = toConditions(filter);
  const afterCursor = cursor ? [toCondition("(c.connect_time, c.key) < (?, ?)", cursor.connect_time, cursor.key)] : [];
  const pageConditions = [...conditions, ...afterCursor];
  const selectCount = `select null as key, (select count(*) from (select 1 from connection_logs c where ${joinConditions(conditions)} limit ${MAX_CONNECTION_COUNT + 1})) as count`;
  const selectKeys = `select key, 0 from (select c.key as key from connection_logs c where ${joinConditions(pageConditions)}
    order by c.connect_time desc, c.key desc limit ? offset ?)`;
  return {
    sql: `${selectCount} union all ${selectKeys}`,
    params: [...listParams(conditions), ...listParams(pageConditions), limit, offset],
    map: ([key, count]) => ({ key: key === null ? null : Number(key), count: Number(count) }),
  };
};

const owners = alias(users, "owners");

/** The entries with these keys: {keys}, a JSON array. For `scan`. */
const listShown = query(
  build
    .select({
      entry: getTableColumns(connection_logs),
      user: getTableColumns(users),
      memberships: selectMemberships(connection_logs.user_id),
      organization: organizationColumns,
      owner: { username: owners.username },
      workspace: { deleted: workspaces.deleted },
    })
    .from(connection_logs)
    .leftJoin(users, eq(users.id, connection_logs.user_id))
    .leftJoin(owners, eq(owners.id, connection_logs.owner_id))
    .leftJoin(organizations, eq(organizations.id, connection_logs.organization_id))
    .leftJoin(workspaces, eq(workspaces.id, connection_logs.workspace_id))
    .where(sql`${connection_logs.key} in (select value from json_each(${sql.placeholder("keys")}))`)
    .orderBy(desc(connection_logs.connect_time), desc(connection_logs.key)),
);

export type ListedConnection = RowOfQuery<typeof listShown>;

/** Returns a page, newest first, and the number of matches; MAX_CONNECTION_COUNT + 1 means more. */
export const listConnections = async (
  store: Pick<Store, "scan">,
  filter: ConnectionFilter,
  page: ConnectionPage,
): Promise<{ rows: ListedConnection[]; count: number }> => {
  const [first, ...rest] = await store.scan(selectPage(filter, page));
  const keys = rest.map(({ key }) => key);
  const rows = keys.length === 0 ? [] : await store.scan(listShown({ keys: JSON.stringify(keys) }));
  return { rows, count: first?.count ?? 0 };
};

/** The start of a page. Parameters: {id}. */
export const findConnectionCursor = query(
  build
    .select({ connect_time: connection_logs.connect_time, key: connection_logs.key })
    .from(connection_logs)
    .where(eqParam(connection_logs.id)),
);
