// Requests that may come again: with an `Idempotency-Key` the second gets the first one's answer (rule CH-40).
import { invalidField } from "#base/errors.ts";
import { sha256 } from "#base/ids.ts";
import { findChatRequest } from "#db/chats/requests.ts";
import type { DomainContext } from "../context.ts";

const LONGEST = 128;

const HEADER = {
  name: "Idempotency-Key",
  in: "header" as const,
  required: false,
  description: "A request that comes again with the same key within a day is answered as the first was.",
  schema: { type: "string" as const, maxLength: LONGEST },
};
const CHAT = {
  name: "chat",
  in: "path" as const,
  required: true,
  description: "Chat id.",
  schema: { type: "string" as const, format: "uuid" },
};

/** For the `detail` of a route, which takes the place of all parameters that the route itself describes. */
export const REPEATABLE = { parameters: [HEADER] };
export const REPEATABLE_IN_CHAT = { parameters: [CHAT, HEADER] };

/** The key of a request; undefined when it has none. `what` keeps keys of different routes apart. */
export const requestKey = (request: Request, what: string): string | undefined => {
  const key = request.headers.get("idempotency-key") ?? "";
  if (key.length > LONGEST) throw invalidField("Idempotency-Key", `must have at most ${LONGEST} characters`);
  return key === "" ? undefined : `${what} ${key}`;
};

/** Whether this request was answered before, in the chat with this key: then nothing is to be done for it. */
export const isRepeated = async ({ store }: DomainContext, chat: number, key: string | undefined): Promise<boolean> =>
  key !== undefined && (await store.get(findChatRequest({ chat, key }))) !== undefined;

/** The id of the chat that this user makes with this key: always the same (a version 8 UUID). */
export const chatIdOf = (user_id: string, key: string): string => {
  const hex = sha256(`chat ${user_id} ${key}`);
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 3) | 8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
};
