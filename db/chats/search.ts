// The index of what was said in chats and of their titles: the statements that keep it, written in the batch of what
// they index, and the matching of searches. Holds words alone; anyone who searches still has to ask whose the chat is.
import { type SQL, sql } from "drizzle-orm";
import { listStems, splitWords } from "#base/words.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import type { Query, Statement, Value } from "../engine/sql.ts";

type Said = {
  readonly id: number;
  readonly role: string;
  readonly visibility: string;
  readonly content: readonly MessagePart[];
};

/** What people and models have said in words; not what tools answered, nor what is the model's alone. */
const toSearchText = ({ role, visibility, content }: Said): string => {
  if (visibility === "model" || (role !== "user" && role !== "assistant")) return "";
  return content.flatMap(({ type, text }) => (type === "text" && text ? [text] : [])).join("\n");
};

/** New messages of the chat with this key. */
export const indexMessages = (chat: number, messages: readonly Said[]): Statement[] => {
  const rows = messages.flatMap((message): Value[][] => {
    const stems = listStems(toSearchText(message));
    return stems.length === 0 ? [] : [[chat, message.id, stems.join(" ")]];
  });
  if (rows.length === 0) return [];
  return [{ touches: [], sql: "insert into message_search (rowid, words) values ((?1 << 32) | ?2, ?3)", rows }];
};

/** A message and all later ones have left the history. */
export const forgetMessagesFrom = (chat: number, from: number): Statement => ({
  touches: [],
  sql: "delete from message_search where rowid between (?1 << 32) | ?2 and (?1 << 32) | 4294967295",
  rows: [[chat, from]],
});

/** The messages up to this one are deleted for good. */
export const forgetMessagesUpTo = (chat: number, last: number): Statement => ({
  touches: [],
  sql: "delete from message_search where rowid between ?1 << 32 and (?1 << 32) | ?2",
  rows: [[chat, last]],
});

/** The title as it is now. */
export const indexTitle = (chat: number, title: string): Statement => ({
  touches: [],
  sql: "insert or replace into title_search (rowid, words) values (?1, ?2)",
  rows: [[chat, splitWords(title).join(" ")]],
});

/** Number and title of the chat's pull request as they are now; they are found like its title. */
export const indexPull = (chat: number, text: string): Statement => indexTitle(-chat, text);

/** The chat has no pull request any more. */
export const forgetPull = (chat: number): Statement => ({
  touches: [],
  sql: "delete from title_search where rowid = ?1",
  rows: [[-chat]],
});

/** Nothing of the chat is found any more. */
export const forgetChat = (chat: number): Statement[] => [
  forgetMessagesFrom(chat, 0),
  forgetPull(chat),
  { touches: [], sql: "delete from title_search where rowid = ?1", rows: [[chat]] },
];

/** Pages of the index that one slice of a merge writes at most; 16 took 1 ms and at worst 13 with half a million messages. */
const SLICE_PAGES = 8;
export const SEARCH_TABLES = ["message_search", "title_search"] as const;
export type SearchTable = (typeof SEARCH_TABLES)[number];

/** One slice of merging what commits have added, so that searches look into few places. */
export const mergeSearch = (table: SearchTable): Statement => ({
  touches: [],
  sql: `insert into ${table} (${table}, rank) values ('merge', ${SLICE_PAGES})`,
  rows: [[]],
});

/** The index's own list of its pieces: as long as a slice changes it, there is more to merge. */
export const readPieces = (table: SearchTable): Query<string> => ({
  sql: `select hex(block) from ${table}_data where id = 10`,
  params: [],
  map: ([block]) => String(block),
});

/** One alternative of a search: texts that must be there, each as a phrase, and texts that must not. */
export type Alternative = { readonly wanted: readonly string[]; readonly unwanted: readonly string[] };

/** A search in the languages of both indexes; null where no word is left that the index could know. */
export type Matching = { readonly messages: string | null; readonly titles: string | null };

export const toMatching = (alternatives: readonly Alternative[]): Matching => ({
  messages: toMatchExpression(alternatives, listStems),
  titles: toMatchExpression(alternatives, splitWords),
});

/** Only letters and digits come into the quotes, so nothing of a search can be read as the index's own language. */
const toMatchExpression = (alternatives: readonly Alternative[], split: (text: string) => string[]): string | null => {
  const phrases = (texts: readonly string[]): string[] =>
    texts.map((text) => split(text).join(" ")).flatMap((words) => (words === "" ? [] : [`"${words}"`]));
  const found = alternatives.flatMap(({ wanted, unwanted }) => {
    const must = phrases(wanted);
    const mustNot = phrases(unwanted);
    if (must.length === 0) return [];
    return [`(${must.join(" AND ")})${mustNot.length === 0 ? "" : ` NOT (${mustNot.join(" OR ")})`}`];
  });
  return found.length === 0 ? null : found.map((one) => `(${one})`).join(" OR ");
};

/** True of a root chat (its row in the query is named `chats`) that matches, itself or by a sub-chat. Looks at its own matches only. */
export const rootMatches = (matching: Matching): SQL => {
  const sub = sql`exists (select 1 from chats sub where sub.parent_chat_id = chats.id and ${chatMatches(sql`sub.key`, matching)})`;
  return sql`(${chatMatches(sql`chats.key`, matching)} or ${sub})`;
};

const chatMatches = (key: SQL, { messages, titles }: Matching): SQL => {
  const said = sql`exists (select 1 from message_search where message_search match ${messages}
    and rowid between (${key} << 32) and ((${key} << 32) | 4294967295))`;
  const named = sql`exists (select 1 from title_search where title_search match ${titles} and rowid in (${key}, -${key}))`;
  const ways = [...(messages === null ? [] : [said]), ...(titles === null ? [] : [named])];
  return ways.length === 0 ? sql`false` : sql`(${sql.join(ways, sql` or `)})`;
};

/**
 * The keys of root chats of this owner where a message or the title matches, in the chat itself or in a sub-chat. Every match of every
 * owner is looked at, which is quick (0.1 us each) unless the words are everywhere; then `rootMatches` has found enough before.
 */
export const matchingRoots = (owner_id: string, { messages, titles }: Matching): SQL => {
  const ways = [
    ...(messages === null ? [] : [sql`select rowid >> 32 from message_search where message_search match ${messages}`]),
    ...(titles === null ? [] : [sql`select abs(rowid) from title_search where title_search match ${titles}`]),
  ];
  if (ways.length === 0) return sql`select 0 where false`;
  return sql`with hits (key) as materialized (${sql.join(ways, sql` union all `)})
    select key from hits union all
    select root.key from chats sub join chats root on root.id = sub.parent_chat_id
    where sub.owner_id = ${owner_id} and sub.parent_chat_id is not null and sub.key in (select key from hits)`;
};
