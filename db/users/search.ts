// Lists of users: filters, pages, and counts.
import { and, count, eq, exists, getTableColumns, gte, inArray, lt, ne, or, type SQL, sql } from "drizzle-orm";
import { build, type Query, queryNow } from "../engine/sql.ts";
import { organization_members, users } from "../schema/users.ts";
import { isNotDeleted, type User } from "./users.ts";

/** Filters of a list of users. Absent members are ignored. Times are in milliseconds. */
export type UserFilter = {
  /** Part of the username, the display name or the email address. */
  text?: string | undefined;
  statuses?: readonly User["status"][] | undefined;
  /** Users with any of these site roles; `member` matches everyone. */
  roles?: readonly string[] | undefined;
  login_types?: readonly string[] | undefined;
  last_seen_after?: number | undefined;
  last_seen_before?: number | undefined;
  created_after?: number | undefined;
  created_before?: number | undefined;
  github_com_user_id?: number | undefined;
  /** Only this user and the members of these organizations, for callers without broader permissions. */
  visible?: { user_id: string; organizations: readonly string[] } | undefined;
  /** The account that owns prebuilds, which is never listed. */
  except: string;
};

/** Escapes `%` and `_` in the text. */
const contains = (column: typeof users.username | typeof users.email | typeof users.name, text: string): SQL =>
  sql`instr(lower(${column}), ${text.toLowerCase()}) > 0`;

const matching = (filter: UserFilter): SQL | undefined =>
  and(
    isNotDeleted,
    ne(users.id, filter.except),
    filter.text
      ? or(contains(users.username, filter.text), contains(users.email, filter.text), contains(users.name, filter.text))
      : undefined,
    filter.statuses?.length ? inArray(users.status, [...filter.statuses]) : undefined,
    filter.login_types?.length ? inArray(users.login_type, [...filter.login_types]) : undefined,
    filter.roles?.length && !filter.roles.includes("member")
      ? sql`exists (select 1 from json_each(${users.roles}) where value in ${[...filter.roles]})`
      : undefined,
    filter.last_seen_after === undefined ? undefined : gte(users.last_seen_at, filter.last_seen_after),
    filter.last_seen_before === undefined ? undefined : lt(users.last_seen_at, filter.last_seen_before),
    filter.created_after === undefined ? undefined : gte(users.created_at, filter.created_after),
    filter.created_before === undefined ? undefined : lt(users.created_at, filter.created_before),
    filter.github_com_user_id === undefined ? undefined : eq(users.github_com_user_id, filter.github_com_user_id),
    filter.visible && isVisibleTo(filter.visible),
  );

const isVisibleTo = ({ user_id, organizations }: NonNullable<UserFilter["visible"]>): SQL | undefined =>
  or(
    eq(users.id, user_id),
    organizations.length === 0
      ? undefined
      : exists(
          build
            .select({ one: sql`1` })
            .from(organization_members)
            .where(
              and(
                eq(organization_members.user_id, users.id),
                inArray(organization_members.organization_id, [...organizations]),
              ),
            ),
        ),
  );

export type ListedUser = User & { organization_ids: string[] };

/** Returns a page of users by username. `after` is the last username of the previous page. For `store.scan`. */
export const searchUsers = (
  filter: UserFilter,
  page: { limit: number; offset: number; after?: string | undefined },
): Query<ListedUser> =>
  queryNow(
    build
      .select({
        ...getTableColumns(users),
        organization_ids: sql<
          string[]
        >`(select json_group_array(organization_id) from organization_members where user_id = ${sql.raw('"users"."id"')})`
          .mapWith((ids: string) => JSON.parse(ids) as string[])
          .as("organization_ids"),
      })
      .from(users)
      .where(
        and(matching(filter), page.after === undefined ? undefined : sql`lower(${users.username}) > ${page.after}`),
      )
      .orderBy(sql`lower(${users.username})`)
      .limit(page.limit)
      .offset(page.offset),
  );

export const countUsers = (filter: UserFilter): Query<{ count: number }> =>
  queryNow(build.select({ count: count() }).from(users).where(matching(filter)));
