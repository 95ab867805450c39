// Idempotent requests: with an `Idempotency-Key`, a repeated request gets the first one's response (rule CH-40).
import { invalidField } from "#base/errors.ts";
import { sha256 } from "#base/ids.ts";
import { findChatAccessRow } from "#db/chats/chats.ts";
import { findAnswer, type RequestKey } from "#db/chats/requests.ts";
import type { DomainContext } from "../context.ts";

const MAX_KEY_CHARS = 128;

/** The header declared by routes with such requests. */
export const IDEMPOTENCY_HEADERS = {
  "Idempotency-Key": {
    description:
      "Repeating a request with the same key within a day returns the first response. Returns 409 for a different body with the same key.",
    schema: { type: "string", maxLength: MAX_KEY_CHARS },
  },
} as const;

/** Returns the key of a request with this body; undefined if the request has none. `what` separates the keys of different routes. */
export const parseRequestKey = (request: Request, what: string, body: unknown): RequestKey | undefined => {
  const key = request.headers.get("idempotency-key") ?? "";
  if (key.length > MAX_KEY_CHARS)
    throw invalidField("Idempotency-Key", `must have at most ${MAX_KEY_CHARS} characters`);
  return key === "" ? undefined : { key: `${what} ${key}`, digest: sha256(toSortedJson(body)) };
};

/** Serializes a value independently of the order of members. */
const toSortedJson = (value: unknown): string =>
  JSON.stringify(value, (_name, one: unknown) =>
    typeof one === "object" && one !== null && !Array.isArray(one)
      ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1)))
      : one,
  );

/**
 * Returns whether this request was already answered in the chat with this key, so that the caller has nothing left to do. Rejects
 * with 409 when the key was used with another body.
 */
export const isRepeated = async (
  { store }: Pick<DomainContext, "store">,
  chat_key: number,
  request: RequestKey | undefined,
): Promise<boolean> => request !== undefined && (await findAnswer(store, chat_key, request)) !== undefined;

/** Returns whether the chat of this request already exists. Rejects with 409 when the key was used with another body. */
export const isCreatedByRequest = async (
  ctx: Pick<DomainContext, "store">,
  id: string,
  request: RequestKey | undefined,
): Promise<boolean> => {
  const created = request && (await ctx.store.get(findChatAccessRow({ id })));
  if (created) await isRepeated(ctx, created.key, request);
  return created !== undefined;
};

/** Returns the ID of the chat that this user creates with this key: always the same (a version 8 UUID). */
export const toChatId = (user_id: string, key: string): string => {
  const hex = sha256(`chat ${user_id} ${key}`);
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 3) | 8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
};
