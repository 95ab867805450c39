// The search index of chat messages and titles: the statements that maintain it, written in the batch of the content, and search
// conditions. The index contains only words, so searches must check access to the chat.
import { type SQL, sql } from "drizzle-orm";
import { listStems, splitWords } from "#base/text/words.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import type { Query, Statement, Value } from "../engine/sql.ts";

type IndexedMessage = {
  readonly id: number;
  readonly role: string;
  readonly visibility: string;
  readonly content: readonly MessagePart[];
};

/** Returns the text of people and models, without tool results and content that only the model sees. */
const toSearchText = ({ role, visibility, content }: IndexedMessage): string => {
  if (visibility === "model" || (role !== "user" && role !== "assistant")) return "";
  return content.flatMap(({ type, text }) => (type === "text" && text ? [text] : [])).join("\n");
};

/** Indexes new messages of the chat with this key. */
export const indexMessages = (chat: number, messages: readonly IndexedMessage[]): Statement[] => {
  const rows = messages.flatMap((message): Value[][] => {
    const stems = listStems(toSearchText(message));
    return stems.length === 0 ? [] : [[chat, message.id, stems.join(" ")]];
  });
  if (rows.length === 0) return [];
  return [{ touches: [], sql: "insert into message_search (rowid, words) values ((?1 << 32) | ?2, ?3)", rows }];
};

/** Removes a message and all later ones from the index. */
export const unindexMessagesFrom = (chat: number, from: number): Statement => ({
  touches: [],
  sql: "delete from message_search where rowid between (?1 << 32) | ?2 and (?1 << 32) | 4294967295",
  rows: [[chat, from]],
});

/** Removes messages up to and including this one after they were deleted permanently. */
export const unindexMessagesUpTo = (chat: number, last: number): Statement => ({
  touches: [],
  sql: "delete from message_search where rowid between ?1 << 32 and (?1 << 32) | ?2",
  rows: [[chat, last]],
});

/** Replaces the indexed title. */
export const indexTitle = (chat: number, title: string): Statement => ({
  touches: [],
  sql: "insert or replace into title_search (rowid, words) values (?1, ?2)",
  rows: [[chat, splitWords(title).join(" ")]],
});

/** Replaces the indexed number and title of the chat's pull request, which are searched like its title. */
export const indexPull = (chat: number, text: string): Statement => indexTitle(-chat, text);

/** Removes the pull request from the index. */
export const unindexPull = (chat: number): Statement => ({
  touches: [],
  sql: "delete from title_search where rowid = ?1",
  rows: [[-chat]],
});

/** Removes the chat from the index. */
export const unindexChat = (chat: number): Statement[] => [
  unindexMessagesFrom(chat, 0),
  unindexPull(chat),
  { touches: [], sql: "delete from title_search where rowid = ?1", rows: [[chat]] },
];

/** Maximum index pages that a slice of a merge writes, so that it delays other writes by a few milliseconds at most. */
const SLICE_PAGES = 8;
export const SEARCH_TABLES = ["message_search", "title_search"] as const;
export type SearchTable = (typeof SEARCH_TABLES)[number];

/** Merges one slice of new index entries, so that searches read few segments. */
export const mergeSearch = (table: SearchTable): Statement => ({
  touches: [],
  sql: `insert into ${table} (${table}, rank) values ('merge', ${SLICE_PAGES})`,
  rows: [[]],
});

/** The index's list of segments. If a slice of a merge has changed it, another slice is needed. */
export const readSegments = (table: SearchTable): Query<string> => ({
  sql: `select hex(block) from ${table}_data where id = 10`,
  params: [],
  map: ([block]) => String(block),
});

/** An alternative of a search: phrases that must occur, and phrases that must not. */
export type Alternative = { readonly wanted: readonly string[]; readonly unwanted: readonly string[] };

/** A search expression for each of the two indexes; null if no word remains that the index could contain. */
export type Matching = { readonly messages: string | null; readonly titles: string | null };

export const toMatching = (alternatives: readonly Alternative[]): Matching => ({
  messages: toMatchExpression(alternatives, listStems),
  titles: toMatchExpression(alternatives, splitWords),
});

/** Only letters and digits are quoted, so that a search cannot contain index syntax. */
const toMatchExpression = (alternatives: readonly Alternative[], split: (text: string) => string[]): string | null => {
  const phrases = (texts: readonly string[]): string[] =>
    texts.map((text) => split(text).join(" ")).flatMap((words) => (words === "" ? [] : [`"${words}"`]));
  const found = alternatives.flatMap(({ wanted, unwanted }) => {
    const wantedPhrases = phrases(wanted);
    const unwantedPhrases = phrases(unwanted);
    if (wantedPhrases.length === 0) return [];
    return [
      `(${wantedPhrases.join(" AND ")})${unwantedPhrases.length === 0 ? "" : ` NOT (${unwantedPhrases.join(" OR ")})`}`,
    ];
  });
  return found.length === 0 ? null : found.map((one) => `(${one})`).join(" OR ");
};

/**
 * Returns the condition that a root chat (its row in the query is named `chats`) matches, itself or through a sub-chat. Reads only that
 * chat's matches.
 */
export const matchesRoot = (matching: Matching): SQL => {
  const sub = sql`exists (select 1 from chats sub where sub.parent_chat_id = chats.id and ${matchesChat(sql`sub.key`, matching)})`;
  return sql`(${matchesChat(sql`chats.key`, matching)} or ${sub})`;
};

const matchesChat = (key: SQL, { messages, titles }: Matching): SQL => {
  const message = sql`exists (select 1 from message_search where message_search match ${messages}
    and rowid between (${key} << 32) and ((${key} << 32) | 4294967295))`;
  const title = sql`exists (select 1 from title_search where title_search match ${titles} and rowid in (${key}, -${key}))`;
  const conditions = [...(messages === null ? [] : [message]), ...(titles === null ? [] : [title])];
  return conditions.length === 0 ? sql`false` : sql`(${sql.join(conditions, sql` or `)})`;
};

/** Selects the key of the chat of each hit, root chat or sub-chat, of any owner. Reads at most `maxHits` hits. */
export const selectFirstHits = (matching: Matching, maxHits: number): SQL => {
  const limit = sql.raw(String(maxHits));
  const selects = listHits(matching).map((select) => sql`select key from (${select} limit ${limit}) hit`);
  return sql`${union(selects)} limit ${limit}`;
};

/**
 * Selects the keys of this owner's root chats where a message or the title matches, in the chat itself or in a sub-chat. Reads every hit
 * of every owner (0.1 us each).
 */
export const matchingRoots = (owner_id: string, matching: Matching): SQL => sql`
  with hits (key) as materialized (${union(listHits(matching))})
  select key from hits union all
  select root.key from chats sub join chats root on root.id = sub.parent_chat_id
  where sub.owner_id = ${owner_id} and sub.parent_chat_id is not null and sub.key in (select key from hits)`;

const listHits = ({ messages, titles }: Matching): SQL[] => [
  ...(messages === null
    ? []
    : [sql`select rowid >> 32 as key from message_search where message_search match ${messages}`]),
  ...(titles === null ? [] : [sql`select abs(rowid) as key from title_search where title_search match ${titles}`]),
];

const union = (selects: SQL[]): SQL =>
  selects.length === 0 ? sql`select 0 as key where false` : sql.join(selects, sql` union all `);
