// Selects the chats of a page of the list, in order, by filters, search and cursor. Returns only IDs; views.ts reads the rows. Runs on a
// reader Worker.
import { and, eq, isNull, or, type SQL, sql } from "drizzle-orm";
import { type Query, textNow } from "../engine/sql.ts";
import { chats } from "../schema/chats.ts";
import type { ChatRow } from "./chats.ts";
import { buildPullConditions, type PullFilter } from "./diffs.ts";
import { type Matching, matchesRoot, matchingRoots, selectFirstHits } from "./search.ts";

export type ChatFilter = {
  readonly owner_id: string;
  /**
   * Includes the user's own chats, chats of others that are shared with one of these subjects (the user and the user's organizations), or
   * both.
   */
  readonly mine: boolean;
  readonly shared_with: readonly string[];
  readonly archived: boolean;
  readonly has_unread?: boolean | undefined;
  readonly title?: string | undefined;
  readonly labels: readonly { readonly key: string; readonly value: string }[];
  /** Conditions on the chat's pull request. */
  readonly pull: PullFilter;
};

/** The page starts after the chat `after` and skips `offset` more chats. */
export type ChatPage = {
  readonly limit: number;
  readonly offset: number;
  readonly after?: Pick<ChatRow, "id" | "pin_order" | "updated_at"> | undefined;
};

/** Returns the IDs of root chats: the user's pinned chats in their order, then the others, most recently updated first. */
export const listPage = (filter: ChatFilter, page: ChatPage): Query<string> => selectPage(filter, page);

/**
 * Returns the page of a search. Reads all hits, and then goes through the list. For words that many chats contain, but few of the newest
 * ones.
 */
export const searchAllHits = (filter: ChatFilter, search: Matching, page: ChatPage): Query<string> =>
  selectPage(filter, page, isHit(filter, search));

/** With more hits than this, the chats with hits are not examined one by one. */
const MAX_FEW_HITS = 2_000;

/** Returns the page of a search with few hits. Examines only the chats with hits. Returns a single null if there are many hits. */
export const searchFewHits = (filter: ChatFilter, search: Matching, { limit, offset, after }: ChatPage) => {
  const pin = filter.mine
    ? sql`(case when ${chats.owner_id} = ${filter.owner_id} then ${chats.pin_order} else 0 end)`
    : sql`0`;
  const sortTime = sql`(case when ${pin} = 0 then ${chats.updated_at} else 0 end)`;
  const isAfterPin =
    after && (after.pin_order > 0 ? sql`(${pin} = 0 or ${pin} > ${after.pin_order})` : sql`${pin} = 0`);
  const where = and(
    sql`${chats.key} in (select key from few union all select root.key from few
      join chats sub on sub.key = few.key join chats root on root.id = sub.parent_chat_id)`,
    ...buildConditions(filter),
    isAfterPin,
    after?.pin_order === 0 ? isAfterCursor(after) : undefined,
  );
  return textNow<string | null>(sql`with hits (key) as materialized (${selectFirstHits(search, MAX_FEW_HITS + 1)}),
    few (key) as materialized (select distinct key from hits where (select count(*) from hits) <= ${sql.raw(String(MAX_FEW_HITS))}),
    found (id, place) as (
      select ${chats.id}, row_number() over (order by ${pin} = 0, ${pin}, ${sortTime} desc, ${chats.id} desc) from ${chats} not indexed where ${where})
    select id from (
      select null as id, 0 as place where (select count(*) from hits) > ${sql.raw(String(MAX_FEW_HITS))}
      union all select id, place from (select id, place from found order by place limit ${limit} offset ${offset}) page
    ) answer order by place`);
};

/** Returns the number of hits of a search over all owners, at most `limit`. */
export const countHits = (search: Matching, limit: number): Query<number> =>
  textNow(sql`select count(*) from (${selectFirstHits(search, limit)}) hits`);

/**
 * Returns those of the given root chats that match, in any order. Examines each given chat separately, without reading other hits. The
 * given list is materialized, because PostgreSQL would otherwise examine all chats.
 */
export const listMatching = (ids: readonly string[], search: Matching): Query<string> =>
  textNow(sql`with asked (id, key) as materialized (
      select ${chats.id}, ${chats.key} from ${chats} where ${chats.id} in (select value from json_each(${JSON.stringify(ids)})))
    select chats.id from asked chats where ${matchesRoot(search)}`);

/** Reads pinned and other chats separately, because each has an index. Reads the entries of an index only up to the end of the page. */
const selectPage = (filter: ChatFilter, { limit, offset, after }: ChatPage, hit?: SQL): Query<string> => {
  const last = Math.min(offset + limit, Number.MAX_SAFE_INTEGER);
  const unpinned = and(
    ...buildConditions(filter),
    isUnpinned(filter),
    after?.pin_order === 0 ? isAfterCursor(after) : undefined,
    hit,
  );
  const unpinnedPage = sql`select id, pin, moved from (
    select ${chats.id} as id, 0 as pin, ${chats.updated_at} as moved from ${chats} where ${unpinned}
    order by ${chats.updated_at} desc, ${chats.id} desc limit ${last}) rest`;
  if (!filter.mine || after?.pin_order === 0) {
    return textNow(
      sql`select id from (${unpinnedPage}) page order by moved desc, id desc limit ${limit} offset ${offset}`,
    );
  }
  const isNext = after ? sql`${chats.pin_order} > ${after.pin_order}` : undefined;
  const ownConditions = buildConditions({ ...filter, shared_with: [] });
  const pinned = sql`select ${chats.id} as id, ${chats.pin_order} as pin, 0 as moved from ${chats}
    where ${and(...ownConditions, sql`${chats.pin_order} > 0`, isNext, hit)}`;
  return textNow(sql`select id from (${pinned} union all ${unpinnedPage}) page
    order by pin = 0, pin, moved desc, id desc limit ${limit} offset ${offset}`);
};

const buildConditions = (filter: ChatFilter): (SQL | undefined)[] => {
  const { archived, has_unread, title, labels, pull } = filter;
  return [
    toAccessCondition(filter),
    eq(chats.archived, archived),
    isNull(chats.parent_chat_id),
    has_unread === undefined
      ? undefined
      : sql`${sql.raw(has_unread ? "" : "not ")}(${chats.last_assistant_id} > ${chats.read_cursor})`,
    title === undefined ? undefined : sql`instr(lower(${chats.title}), ${title}) > 0`,
    ...labels.map(
      ({ key, value }) =>
        sql`exists (select 1 from json_each(${chats.labels}) l where l.key = ${key} and l.value = ${value})`,
    ),
    ...buildPullConditions(pull),
  ];
};

/** Finds chats of others by their shares, and the user's own by the index of the list. */
const toAccessCondition = ({ owner_id, mine, shared_with }: ChatFilter): SQL | undefined => {
  const own = eq(chats.owner_id, owner_id);
  if (mine && shared_with.length === 0) return own;
  const shared = sql`(${chats.owner_id} <> ${owner_id} and ${chats.organization_id} in ${[...shared_with]} and ${chats.key} in
    (select s.chat from chat_shares s where s.subject in ${[...shared_with]}))`;
  return shared_with.length === 0 ? sql`false` : mine ? or(own, shared) : shared;
};

/** Ignores the pins of other users. */
const isUnpinned = ({ owner_id, shared_with }: ChatFilter): SQL =>
  shared_with.length === 0
    ? sql`${chats.pin_order} = 0`
    : sql`(${chats.pin_order} = 0 or ${chats.owner_id} <> ${owner_id})`;

const isHit = ({ owner_id, shared_with }: ChatFilter, search: Matching): SQL => {
  // The plus sign makes SQLite go through the list in order and look up each key among the hits, and not the other way round.
  const own = sql`+${chats.key} in (${matchingRoots(owner_id, search)})`;
  if (shared_with.length === 0) return own;
  return sql`case when ${chats.owner_id} = ${owner_id} then ${own} else ${matchesRoot(search)} end`;
};

/** Matches rows that follow this one in the order of the list. */
const isAfterCursor = ({ updated_at, id }: Pick<ChatRow, "id" | "updated_at">): SQL =>
  sql`(${chats.updated_at}, ${chats.id}) < (${updated_at}, ${id})`;
