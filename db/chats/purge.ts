// Finds chats past their retention period, and deletes a chat in slices (facts/chats 4.16).
import { and, asc, lt, sql } from "drizzle-orm";
import { build, eqParam, query, type Statement } from "../engine/sql.ts";
import { chats, messages } from "../schema/chats.ts";
import { unindexMessagesUpTo } from "./search.ts";

/** Maximum chats per run. */
const MAX_CHATS_PER_RUN = 1_000;
/** Messages deleted per commit, including their search index entries, which take about 10 us each. */
const SLICE_MESSAGES = 200;

/**
 * Root chats that are not archived, pinned or active, and that have had no activity since {before}, also not in sub-chats; longest inactive
 * first. Every message counts as activity. For `scan`, because it reads the whole index of the list.
 */
export const listInactiveChats = query(
  build
    .select({ id: chats.id })
    .from(chats)
    .where(
      sql`${chats.key} in (select c.key from chats c indexed by chats_owner
          where c.parent_chat_id is null and c.archived = 0 and c.updated_at < ${sql.placeholder("before")})
        and ${chats.pin_order} = 0 and ${chats.status} not in ('running', 'interrupting', 'requires_action')
        and not exists (select 1 from chats sub where sub.parent_chat_id = ${chats.id} and sub.archived = 0
          and (sub.updated_at >= ${sql.placeholder("before")} or sub.status in ('running', 'interrupting', 'requires_action')))`,
    )
    .orderBy(asc(chats.updated_at))
    .limit(MAX_CHATS_PER_RUN),
);

/** Root chats archived before {before}. For `scan`. */
export const listExpiredChats = query(
  build
    .select({ id: chats.id })
    .from(chats)
    .where(
      and(
        // Repeats the condition of the index `chats_archived` word for word.
        sql`${chats.archived} = 1 and ${chats.parent_chat_id} is null`,
        lt(chats.updated_at, sql.placeholder("before")),
      ),
    )
    .orderBy(asc(chats.updated_at))
    .limit(MAX_CHATS_PER_RUN),
);

/** The last message of the next slice. Parameters: {chat}. */
export const findSliceEnd = query(
  build
    .select({ id: sql<number>`max(id)`.as("id") })
    .from(
      build
        .select({ id: messages.id })
        .from(messages)
        .where(eqParam(messages.chat))
        .orderBy(asc(messages.id))
        .limit(SLICE_MESSAGES)
        .as("slice"),
    )
    .having(sql`max(id) is not null`),
);

export const deleteMessageSlice = (chat: number, last: number): Statement[] => [
  unindexMessagesUpTo(chat, last),
  { touches: [], sql: "delete from messages where chat = ?1 and id <= ?2", rows: [[chat, last]] },
];

export const deleteChat = (id: string, snapshot_version: number): Statement => ({
  touches: [],
  sql: "delete from chats where id = ?1 and snapshot_version = ?2",
  rows: [[id, snapshot_version]],
  expect: 1,
});
