// Which chats have had their time, and the statements that delete one, piece by piece (facts/chats 4.16).
import { and, asc, lt, sql } from "drizzle-orm";
import { build, given, query, type Statement } from "../engine/sql.ts";
import { chats, messages } from "../schema/chats.ts";
import { forgetChatContext } from "./context.ts";
import { forgetChat, forgetMessagesUpTo } from "./search.ts";

/** Chats that one run takes up at most. */
const CHATS_AT_ONCE = 1_000;
/** Messages that go in one commit: their words leave the index in it, too, which costs some 10 us each. */
const SLICE = 200;

/**
 * Root chats that are neither archived, pinned nor active, in which nothing has moved since {before}, nor in their sub-chats; the
 * longest silent first. A message moves its chat. For `scan`: it reads the index of the list from end to end.
 */
export const listSilentChats = query(
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
    .limit(CHATS_AT_ONCE),
);

/** Root chats that have been archived before {before}. For `scan`. */
export const listForgottenChats = query(
  build
    .select({ id: chats.id })
    .from(chats)
    .where(
      and(
        // Word by word as the index `chats_archived` has it.
        sql`${chats.archived} = 1 and ${chats.parent_chat_id} is null`,
        lt(chats.updated_at, sql.placeholder("before")),
      ),
    )
    .orderBy(asc(chats.updated_at))
    .limit(CHATS_AT_ONCE),
);

/** The last message of the next slice: {chat}. */
export const findSliceEnd = query(
  build
    .select({ id: sql<number>`max(id)`.as("id") })
    .from(
      build
        .select({ id: messages.id })
        .from(messages)
        .where(given(messages.chat))
        .orderBy(asc(messages.id))
        .limit(SLICE)
        .as("slice"),
    )
    .having(sql`max(id) is not null`),
);

export const deleteMessageSlice = (chat: number, last: number): Statement[] => [
  forgetMessagesUpTo(chat, last),
  { touches: [], sql: "delete from messages where chat = ?1 and id <= ?2", rows: [[chat, last]] },
];

/** Everything else that names the chat. The bytes of files go when no row names them any more. */
export const deleteChatLeavings = (chat: number): Statement[] => [
  ...forgetChat(chat),
  ...forgetChatContext(chat),
  ...["queued_messages", "chat_requests", "chat_files", "chat_shares", "chat_runs", "chat_diffs"].map((table) => ({
    touches: [],
    sql: `delete from ${table} where chat = ?1`,
    rows: [[chat]],
  })),
];

export const deleteChat = (id: string, snapshot_version: number): Statement => ({
  touches: [],
  sql: "delete from chats where id = ?1 and snapshot_version = ?2",
  rows: [[id, snapshot_version]],
  expect: 1,
});
