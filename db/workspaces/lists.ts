// Lists and searches of workspaces, run on a reader Worker: which ones, in which order, and how many (facts/platform 3.3). Only ids
// come from here; what is shown of them is read by key. Every condition has an index (a test reads the plans), and written by hand
// because the order of the joins is what makes a page of many cheap: people by name, then the workspaces of each by name.

import type { Query } from "../engine/sql.ts";
import { isNarrow, type Part, toConditions, toScope, toScopes, type WorkspaceFilter } from "./filter.ts";

/** `limit` rows at most; `favorites_of` is anyone who looks. With `after` those with larger ids, in the order of ids. */
export type Wanted = { readonly favorites_of: string; readonly limit: number; readonly after?: string | undefined };

type Rank = "favorites" | "running" | "others";

/** Statuses that most workspaces have. */
const COMMON = ["running", "stopped"];

/** So much of a name is in few of them; all names are looked at in their index. */
const isName = ({ name = "", status }: WorkspaceFilter): boolean => name.length >= 3 && status === undefined;

/** Few rows are found first and sorted then; for the rest people no longer exist through by name until the page is full. */
const isFew = (filter: WorkspaceFilter): boolean =>
  isNarrow(filter) || isName(filter) || (filter.status !== undefined && !COMMON.includes(filter.status));

/** A row of a page: an id, or in the first row how many there are on all pages. */
type PageRow = { readonly id: string | null; readonly count: number };

/**
 * How many match, and the ids of the first `limit` of them: the viewer's favorites, what runs, and the rest, each by owner and name; or those
 * behind a cursor.
 * One statement, so that a workspace which moves from one part to another in the meantime is in exactly one of them.
 */
export const pageOfWorkspaces = (filter: WorkspaceFilter, wanted: Wanted): Query<PageRow> => {
  const { after } = wanted;
  const found =
    after === undefined
      ? listRanks(filter).map((rank) => rankedIds(filter, rank, wanted))
      : [idsAfter(filter, after, wanted.limit)];
  const parts = [count(filter), ...found];
  return {
    sql: `${parts.map(({ sql }) => sql).join("\nunion all ")}\nlimit ?`,
    params: [...parts.flatMap(({ params }) => params), wanted.limit + 1],
    map: ([id, count]) => ({ id: id as string | null, count: Number(count) }),
  };
};

/** The parts in which something can be found. */
const listRanks = ({ status }: WorkspaceFilter): readonly Rank[] => {
  if (status === undefined) return ["favorites", "running", "others"];
  return status === "running" ? ["favorites", "running"] : ["favorites", "others"];
};

const IS_AFTER = "w.id > ?";

/** By what never changes, so that workspaces which start and stop in the meantime are on one page each. */
const idsAfter = (filter: WorkspaceFilter, after: string, limit: number): Part => {
  const parts: Part[] = [...toConditions(filter), toScope(filter), { sql: IS_AFTER, params: [after] }];
  return {
    sql: `select id, 0 from (select w.id from workspaces w ${chooseIndex(filter)}
      where ${parts.map((part) => part.sql).join(" and ")} order by w.id limit ?)`,
    params: [...parts.flatMap((part) => part.params), limit],
  };
};

const rankedIds = (filter: WorkspaceFilter, rank: Rank, wanted: Wanted): Part => {
  const isMarked = rank === "favorites";
  const mine = `${isMarked ? "" : "not "}(${isMarked ? "" : "+"}w.owner_id = ? and w.favorite = 1)`;
  const byName = !isMarked && !isFew(filter);
  const parts: Part[] = [
    ...toConditions(filter),
    toScope(filter),
    { sql: mine, params: [wanted.favorites_of] },
    ...(filter.status === undefined && !isMarked ? [selectRank(rank, byName)] : []),
  ];
  // In the order of the index: nothing is sorted but what is found.
  const index = rank === "running" || filter.status !== undefined ? "workspaces_list" : "workspaces_name";
  const from = byName
    ? `users u cross join workspaces w indexed by ${index} on w.owner_id = u.id`
    : `workspaces w ${chooseIndex(filter)} join users u on u.id = w.owner_id`;
  return {
    sql: `select id, 0 from (select w.id from ${from} where ${parts.map((part) => part.sql).join(" and ")}
      order by lower(u.username), u.id, lower(w.name) limit ?)`,
    params: [...parts.flatMap((part) => part.params), wanted.limit],
  };
};

const selectRank = (rank: Rank, byName: boolean): Part => ({
  sql: `${byName ? "" : "+"}w.status ${rank === "running" ? "=" : "<>"} 'running'`,
  params: [],
});

/** What SQLite does not find on its own. */
const chooseIndex = (filter: WorkspaceFilter): string => {
  const { shared, shared_with_user, shared_with_group } = filter;
  if (shared === true || shared_with_user !== undefined || shared_with_group !== undefined) {
    return "indexed by workspaces_shared";
  }
  return isName(filter) && !isNarrow(filter) ? "indexed by workspaces_alive" : "";
};

const count = (filter: WorkspaceFilter): Part => {
  const all = toConditions(filter);
  const whole = !isNarrow(filter) && filter.status === undefined && filter.scope === "all";
  const index = whole ? "indexed by workspaces_alive" : chooseIndex(filter);
  const counts = toScopes(filter).map((scope) => {
    const parts = [scope, ...all];
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
