// Stored answers for requests that may be retried after a dropped connection, written in the same batch as the effect.
import { and, lt, sql } from "drizzle-orm";
import { AppError } from "#base/errors.ts";
import { build, eqParam, insertInto, query, type Statement, statement } from "../engine/sql.ts";
import type { Store } from "../engine/store.ts";
import { chat_requests } from "../schema/chats.ts";

/** An idempotent request: its key, and a digest of its content (empty if the key covers it). */
export type RequestKey = { readonly key: string; readonly digest: string };

/** The stored answer of a request. Parameters: {chat, key}. */
const findChatRequest = query(
  build
    .select({ answer: chat_requests.answer, digest: chat_requests.digest })
    .from(chat_requests)
    .where(and(eqParam(chat_requests.chat), eqParam(chat_requests.key))),
);

const insert = insertInto(chat_requests);
const deleteOldRequests = statement<{ chat: number; before: number }>(
  build
    .delete(chat_requests)
    .where(and(eqParam(chat_requests.chat), lt(chat_requests.created_at, sql.placeholder("before")))),
);

const ANSWER_TTL_MS = 86_400_000;

/** Returns the stored answer to this request, if any. Throws 409 when the key was used with different content. */
export const findAnswer = async (
  store: Pick<Store, "get">,
  chat: number,
  { key, digest }: RequestKey,
): Promise<{ readonly answer: unknown } | undefined> => {
  const stored = await store.get(findChatRequest({ chat, key }));
  if (stored && stored.digest !== "" && stored.digest !== digest) {
    throw new AppError("conflict", "This Idempotency-Key was already used with a different body.", {
      detail: "Resend the original request, or use a new key for this one.",
    });
  }
  return stored;
};

/** Stores an answer, and deletes answers that are older than a day. */
export const insertAnswer = (
  chat: number,
  { key, digest }: RequestKey,
  { answer, now }: { answer: unknown; now: number },
): Statement[] => [
  deleteOldRequests({ chat, before: now - ANSWER_TTL_MS }),
  insert({ chat, key, digest, answer, created_at: now }),
];
