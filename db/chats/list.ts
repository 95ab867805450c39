// Which chats a page of the list has, and in which order: filters, search and cursor. Answers with ids alone; what is shown of them is read
// by views.ts. Runs on a reader Worker.
import { and, eq, isNull, or, type SQL, sql } from "drizzle-orm";
import { type Query, textNow } from "../engine/sql.ts";
import { chats } from "../schema/chats.ts";
import type { ChatRow } from "./chats.ts";
import { type PullFilter, pullConditions } from "./diffs.ts";
import { firstHits, type Matching, matchingRoots, rootMatches } from "./search.ts";

export type ChatFilter = {
  readonly owner_id: string;
  /** One's own chats, those of others that are shared with one of these (the user and the user's organizations), or both. */
  readonly mine: boolean;
  readonly shared_with: readonly string[];
  readonly archived: boolean;
  readonly has_unread?: boolean | undefined;
  readonly title?: string | undefined;
  readonly labels: readonly { readonly key: string; readonly value: string }[];
  /** What must be true of its pull request. */
  readonly pull: PullFilter;
};

/** The chats behind `after`, without the first `offset` of them. */
export type ChatPage = {
  readonly limit: number;
  readonly offset: number;
  readonly after?: Pick<ChatRow, "id" | "pin_order" | "updated_at"> | undefined;
};

/** The ids of root chats: one's own pinned chats by their place, then the others, the one that moved last first. */
export const listPage = (filter: ChatFilter, page: ChatPage): Query<string> => walk(filter, page);

/** The same page of a search: reads every hit, then walks the list. For words that are in few of the newest chats, but in many chats. */
export const searchAllHits = (filter: ChatFilter, search: Matching, page: ChatPage): Query<string> =>
  walk(filter, page, isHit(filter, search));

/** A search with more hits than that is not answered by looking at every chat that was hit. */
const FEW_HITS = 2_000;

/** The same page of a search that has few hits: looks at the chats that were hit and at no others. A single null where the hits are many. */
export const searchFewHits = (filter: ChatFilter, search: Matching, { limit, offset, after }: ChatPage) => {
  const pin = filter.mine
    ? sql`(case when ${chats.owner_id} = ${filter.owner_id} then ${chats.pin_order} else 0 end)`
    : sql`0`;
  const moved = sql`(case when ${pin} = 0 then ${chats.updated_at} else 0 end)`;
  const isBehind = after && (after.pin_order > 0 ? sql`(${pin} = 0 or ${pin} > ${after.pin_order})` : sql`${pin} = 0`);
  const where = and(
    sql`${chats.key} in (select key from few union all select root.key from few
      join chats sub on sub.key = few.key join chats root on root.id = sub.parent_chat_id)`,
    ...conditions(filter),
    isBehind,
    after?.pin_order === 0 ? behind(after) : undefined,
  );
  return textNow<string | null>(sql`with hits (key) as materialized (${firstHits(search, FEW_HITS + 1)}),
    few (key) as materialized (select distinct key from hits where (select count(*) from hits) <= ${sql.raw(String(FEW_HITS))}),
    found (id, place) as (
      select ${chats.id}, row_number() over (order by ${pin} = 0, ${pin}, ${moved} desc, ${chats.id} desc) from ${chats} not indexed where ${where})
    select id from (
      select null as id, 0 as place where (select count(*) from hits) > ${sql.raw(String(FEW_HITS))}
      union all select id, place from (select id, place from found order by place limit ${limit} offset ${offset}) page
    ) answer order by place`);
};

/** How many hits a search has, of any owner; `most` where it has more. */
export const countHits = (search: Matching, most: number): Query<number> =>
  textNow(sql`select count(*) from (${firstHits(search, most)}) hits`);

/**
 * Those of these root chats that match, in any order. Looks into each by itself, whatever else has hits. Materialized, because PostgreSQL
 * would look into every chat there is and then keep these.
 */
export const listMatching = (ids: readonly string[], search: Matching): Query<string> =>
  textNow(sql`with asked (id, key) as materialized (
      select ${chats.id}, ${chats.key} from ${chats} where ${chats.id} in (select value from json_each(${JSON.stringify(ids)})))
    select chats.id from asked chats where ${rootMatches(search)}`);

/** Pinned chats stand apart, so that each part uses its own index. Reads no more of an index than the page and what is before it. */
const walk = (filter: ChatFilter, { limit, offset, after }: ChatPage, hit?: SQL): Query<string> => {
  const last = Math.min(offset + limit, Number.MAX_SAFE_INTEGER);
  const unpinned = and(
    ...conditions(filter),
    isUnpinned(filter),
    after?.pin_order === 0 ? behind(after) : undefined,
    hit,
  );
  const rest = sql`select id, pin, moved from (
    select ${chats.id} as id, 0 as pin, ${chats.updated_at} as moved from ${chats} where ${unpinned}
    order by ${chats.updated_at} desc, ${chats.id} desc limit ${last}) rest`;
  if (!filter.mine || after?.pin_order === 0) {
    return textNow(sql`select id from (${rest}) page order by moved desc, id desc limit ${limit} offset ${offset}`);
  }
  const isNext = after ? sql`${chats.pin_order} > ${after.pin_order}` : undefined;
  const own = conditions({ ...filter, shared_with: [] });
  const pinned = sql`select ${chats.id} as id, ${chats.pin_order} as pin, 0 as moved from ${chats}
    where ${and(...own, sql`${chats.pin_order} > 0`, isNext, hit)}`;
  return textNow(sql`select id from (${pinned} union all ${rest}) page
    order by pin = 0, pin, moved desc, id desc limit ${limit} offset ${offset}`);
};

const conditions = (filter: ChatFilter): (SQL | undefined)[] => {
  const { archived, has_unread, title, labels, pull } = filter;
  return [
    toSource(filter),
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
    ...pullConditions(pull),
  ];
};

/** Chats of others are found by whom they are shared with, one's own by the index of the list. */
const toSource = ({ owner_id, mine, shared_with }: ChatFilter): SQL | undefined => {
  const own = eq(chats.owner_id, owner_id);
  if (mine && shared_with.length === 0) return own;
  const shared = sql`(${chats.owner_id} <> ${owner_id} and ${chats.organization_id} in ${[...shared_with]} and ${chats.key} in
    (select s.chat from chat_shares s where s.subject in ${[...shared_with]}))`;
  return shared_with.length === 0 ? sql`false` : mine ? or(own, shared) : shared;
};

/** Others' pins are their own affair. */
const isUnpinned = ({ owner_id, shared_with }: ChatFilter): SQL =>
  shared_with.length === 0
    ? sql`${chats.pin_order} = 0`
    : sql`(${chats.pin_order} = 0 or ${chats.owner_id} <> ${owner_id})`;

const isHit = ({ owner_id, shared_with }: ChatFilter, search: Matching): SQL => {
  // The plus: the list is walked in its order and each key is looked up among the hits, never the other way round.
  const own = sql`+${chats.key} in (${matchingRoots(owner_id, search)})`;
  if (shared_with.length === 0) return own;
  return sql`case when ${chats.owner_id} = ${owner_id} then ${own} else ${rootMatches(search)} end`;
};

/** Rows that come after this one in the order of the list. */
const behind = ({ updated_at, id }: Pick<ChatRow, "id" | "updated_at">): SQL =>
  sql`(${chats.updated_at}, ${chats.id}) < (${updated_at}, ${id})`;
