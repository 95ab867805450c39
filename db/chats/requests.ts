// Answers kept for requests that may come again after a dropped connection, written in the batch of what they answer.
import { and, lt, sql } from "drizzle-orm";
import { AppError } from "#base/errors.ts";
import { build, given, insertInto, query, type Statement, statement } from "../engine/sql.ts";
import type { Store } from "../engine/store.ts";
import { chat_requests } from "../schema/chats.ts";

/** A request that may come again: its key, and a digest of what it asks for (empty where the key alone says it). */
export type RequestKey = { readonly key: string; readonly digest: string };

/** {chat, key}. */
const findChatRequest = query(
  build
    .select({ answer: chat_requests.answer, digest: chat_requests.digest })
    .from(chat_requests)
    .where(and(given(chat_requests.chat), given(chat_requests.key))),
);

const insert = insertInto(chat_requests);
const forget = statement<{ chat: number; before: number }>(
  build
    .delete(chat_requests)
    .where(and(given(chat_requests.chat), lt(chat_requests.created_at, sql.placeholder("before")))),
);

const KEPT_MS = 86_400_000;

/** The answer that was kept for this request, if it was answered before. 409 when the key came with something else then. */
export const findAnswer = async (
  store: Pick<Store, "get">,
  chat: number,
  { key, digest }: RequestKey,
): Promise<{ readonly answer: unknown } | undefined> => {
  const known = await store.get(findChatRequest({ chat, key }));
  if (known && known.digest !== "" && known.digest !== digest) {
    throw new AppError("conflict", "This Idempotency-Key came with another body before.", {
      detail: "Send the same request again, or this one with a key of its own.",
    });
  }
  return known;
};

/** Keeps the answer, and forgets what is older than a day. */
export const keepAnswer = (
  chat: number,
  { key, digest }: RequestKey,
  { answer, now }: { answer: unknown; now: number },
): Statement[] => [forget({ chat, before: now - KEPT_MS }), insert({ chat, key, digest, answer, created_at: now })];
