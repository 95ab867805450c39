// Lists and searches of workspaces, run on a reader Worker: which ones, in which order, and how many (facts/platform 3.3). Only ids
// come from here; what is shown of them is read by key. Every condition has an index (a test reads the plans), and written by hand
// because the order of the joins is what makes a page of many cheap: people by name, then the workspaces of each by name.

import type { Query, Value } from "./sql.ts";
import { conditionsOf, isNarrow, type Part, scopeOf, scopesOf, type WorkspaceFilter } from "./workspace-filter.ts";

/** `limit` rows at most; `favorites_of` is whoever looks. */
export type Wanted = { readonly favorites_of: string; readonly limit: number };

/** The three parts of every list, one behind the other: the viewer's favourites, what runs, and the rest. */
export const RANKS = ["favorites", "running", "others"] as const;
export type Rank = (typeof RANKS)[number];

/** Statuses that most workspaces have. */
const COMMON = ["running", "stopped"];

/** So much of a name is in few of them; all names are looked at in their index. */
const isName = ({ name = "", status }: WorkspaceFilter): boolean => name.length >= 3 && status === undefined;

/** Few rows are found first and sorted then; for the rest people are gone through by name until the page is full. */
const isFew = (filter: WorkspaceFilter): boolean =>
  isNarrow(filter) || isName(filter) || (filter.status !== undefined && !COMMON.includes(filter.status));

const idOf = (row: Value[]): string => row[0] as string;

/** The ids of one part of the list, by owner and name. */
export const listWorkspaceIds = (filter: WorkspaceFilter, rank: Rank, wanted: Wanted): Query<string> => {
  const isMarked = rank === "favorites";
  const mine = `${isMarked ? "" : "not "}(${isMarked ? "" : "+"}w.owner_id = ? and w.favorite = 1)`;
  const byName = !isMarked && !isFew(filter);
  const parts: Part[] = [
    ...conditionsOf(filter),
    scopeOf(filter),
    { sql: mine, params: [wanted.favorites_of] },
    ...(filter.status === undefined && !isMarked ? [rankOf(rank, byName)] : []),
  ];
  // In the order of the index: nothing is sorted but what is found.
  const index = rank === "running" || filter.status !== undefined ? "workspaces_list" : "workspaces_name";
  const from = byName
    ? `users u cross join workspaces w indexed by ${index} on w.owner_id = u.id`
    : `workspaces w ${indexOf(filter)} join users u on u.id = w.owner_id`;
  return {
    sql: `select w.id from ${from} where ${parts.map((part) => part.sql).join(" and ")}
      order by lower(u.username), u.id, lower(w.name) limit ?`,
    params: [...parts.flatMap((part) => part.params), wanted.limit],
    map: idOf,
  };
};

const rankOf = (rank: Rank, byName: boolean): Part => ({
  sql: `${byName ? "" : "+"}w.status ${rank === "running" ? "=" : "<>"} 'running'`,
  params: [],
});

/** What SQLite does not find by itself. */
const indexOf = (filter: WorkspaceFilter): string => {
  const { shared, shared_with_user, shared_with_group } = filter;
  if (shared === true || shared_with_user !== undefined || shared_with_group !== undefined) {
    return "indexed by workspaces_shared";
  }
  return isName(filter) && !isNarrow(filter) ? "indexed by workspaces_alive" : "";
};

/** How many match, on all pages together. */
export const countWorkspaces = (filter: WorkspaceFilter): Query<number> => {
  const all = conditionsOf(filter);
  const whole = !isNarrow(filter) && filter.status === undefined && filter.scope === "all";
  const index = whole ? "indexed by workspaces_alive" : indexOf(filter);
  const counts = scopesOf(filter).map((scope) => {
    const parts = [scope, ...all];
    return {
      sql: `(select count(*) from workspaces w ${index} where ${parts.map((part) => part.sql).join(" and ")})`,
      params: parts.flatMap((part) => part.params),
    };
  });
  return {
    sql: `select ${counts.map((count) => count.sql).join(" + ")}`,
    params: counts.flatMap((count) => count.params),
    map: (row) => Number(row[0]),
  };
};
