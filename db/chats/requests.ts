// Answers kept for requests that may come again after a dropped connection, written in the batch of what they answer.
import { and, eq, lt, sql } from "drizzle-orm";
import { build, insertInto, query, type Statement, statement } from "../engine/sql.ts";
import { chat_requests } from "../schema/chats.ts";

/** {chat, key}. */
export const findChatRequest = query(
  build
    .select({ answer: chat_requests.answer })
    .from(chat_requests)
    .where(and(eq(chat_requests.chat, sql.placeholder("chat")), eq(chat_requests.key, sql.placeholder("key")))),
);

const insert = insertInto(chat_requests);
const forget = statement<{ chat: number; before: number }>(
  build
    .delete(chat_requests)
    .where(
      and(eq(chat_requests.chat, sql.placeholder("chat")), lt(chat_requests.created_at, sql.placeholder("before"))),
    ),
);

const KEPT_MS = 86_400_000;

/** Keeps the answer, and forgets what is older than a day. */
export const keepAnswer = (chat: number, key: string, answer: unknown, now: number): Statement[] => [
  forget({ chat, before: now - KEPT_MS }),
  insert({ chat, key, answer, created_at: now }),
];
