// Lists and searches of workspaces, run on a reader Worker: which ones, in which order, and how many (facts/platform 3.3). Returns only
// IDs; details are read by key. Every condition has an index (a test reads the query plans). Handwritten, because the order of joins makes
// a page of a long list cheap: people by name, then the workspaces of each by name.

import type { Query } from "../engine/sql.ts";
import { isNarrow, type SqlCondition, toConditions, toScope, toScopes, type WorkspaceFilter } from "./filter.ts";

/** At most `limit` rows; `favorites_of` is the viewer. With `after`: those with greater IDs, in the order of IDs. */
export type PageInput = { readonly favorites_of: string; readonly limit: number; readonly after?: string | undefined };

type Rank = "favorites" | "running" | "others";

/** Statuses that most workspaces have. */
const COMMON_STATUSES = ["running", "stopped"];

/** A part of a name this long matches few workspaces. Their index contains all names. */
const isName = ({ name = "", status }: WorkspaceFilter): boolean => name.length >= 3 && status === undefined;

/** Few matches are found first and then sorted. Many matches are read in order, person by person, until the page is full. */
const matchesFew = (filter: WorkspaceFilter): boolean =>
  isNarrow(filter) || isName(filter) || (filter.status !== undefined && !COMMON_STATUSES.includes(filter.status));

/** A row of a page: an ID, or in the first row the number of workspaces on all pages. */
type PageRow = { readonly id: string | null; readonly count: number };

/**
 * Returns the number of matches, and the IDs of the first `limit` of them: the viewer's favorites, running ones, and the rest, each by
 * owner and name; or those after a cursor. A single statement, so that a workspace whose rank changes concurrently appears exactly once.
 */
export const listWorkspacePage = (filter: WorkspaceFilter, page: PageInput): Query<PageRow> => {
  const { after } = page;
  const found =
    after === undefined
      ? listRanks(filter).map((rank) => selectRankedIds(filter, rank, page))
      : [selectIdsAfter(filter, after, page.limit)];
  const parts = [selectCount(filter), ...found];
  return {
    sql: `${parts.map(({ sql }) => sql).join("\nunion all ")}\nlimit ?`,
    params: [...parts.flatMap(({ params }) => params), page.limit + 1],
    map: ([id, count]) => ({ id: id as string | null, count: Number(count) }),
  };
};

/** Returns the ranks that can have matches. */
const listRanks = ({ status }: WorkspaceFilter): readonly Rank[] => {
  if (status === undefined) return ["favorites", "running", "others"];
  return status === "running" ? ["favorites", "running"] : ["favorites", "others"];
};

const AFTER_ID = "w.id > ?";

/** Ordered by ID, which never changes, so that each workspace is on exactly one page even if its status changes. */
const selectIdsAfter = (filter: WorkspaceFilter, after: string, limit: number): SqlCondition => {
  const parts: SqlCondition[] = [...toConditions(filter), toScope(filter), { sql: AFTER_ID, params: [after] }];
  return {
    sql: `select id, 0 from (select w.id from workspaces w ${chooseIndex(filter)}
      where ${parts.map((part) => part.sql).join(" and ")} order by w.id limit ?)`,
    params: [...parts.flatMap((part) => part.params), limit],
  };
};

const selectRankedIds = (filter: WorkspaceFilter, rank: Rank, page: PageInput): SqlCondition => {
  const isFavorites = rank === "favorites";
  const favorite = `${isFavorites ? "" : "not "}(${isFavorites ? "" : "+"}w.owner_id = ? and w.favorite = 1)`;
  const byName = !isFavorites && !matchesFew(filter);
  const parts: SqlCondition[] = [
    ...toConditions(filter),
    toScope(filter),
    { sql: favorite, params: [page.favorites_of] },
    ...(filter.status === undefined && !isFavorites ? [selectRank(rank, byName)] : []),
  ];
  // Uses the index's order, so that only matches are sorted.
  const index = rank === "running" || filter.status !== undefined ? "workspaces_list" : "workspaces_name";
  const from = byName
    ? `users u cross join workspaces w indexed by ${index} on w.owner_id = u.id`
    : `workspaces w ${chooseIndex(filter)} join users u on u.id = w.owner_id`;
  return {
    sql: `select id, 0 from (select w.id from ${from} where ${parts.map((part) => part.sql).join(" and ")}
      order by lower(u.username), u.id, lower(w.name) limit ?)`,
    params: [...parts.flatMap((part) => part.params), page.limit],
  };
};

const selectRank = (rank: Rank, byName: boolean): SqlCondition => ({
  sql: `${byName ? "" : "+"}w.status ${rank === "running" ? "=" : "<>"} 'running'`,
  params: [],
});

/** Returns the index that SQLite would not choose itself. */
const chooseIndex = (filter: WorkspaceFilter): string => {
  const { shared, shared_with_user, shared_with_group } = filter;
  if (shared === true || shared_with_user !== undefined || shared_with_group !== undefined) {
    return "indexed by workspaces_shared";
  }
  return isName(filter) && !isNarrow(filter) ? "indexed by workspaces_alive" : "";
};

const selectCount = (filter: WorkspaceFilter): SqlCondition => {
  const conditions = toConditions(filter);
  const matchesMost = !isNarrow(filter) && filter.status === undefined && filter.scope === "all";
  const index = matchesMost ? "indexed by workspaces_alive" : chooseIndex(filter);
  const counts = toScopes(filter).map((scope) => {
    const parts = [scope, ...conditions];
    return {
      sql: `(select count(*) from workspaces w ${index} where ${parts.map((part) => part.sql).join(" and ")})`,
      params: parts.flatMap((part) => part.params),
    };
  });
  return {
    sql: `select null, ${counts.map((one) => one.sql).join(" + ")}`,
    params: counts.flatMap((one) => one.params),
  };
};
