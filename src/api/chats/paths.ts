// Path parameters of chat routes.
import { t } from "elysia";
import { invalid } from "#base/errors.ts";
import { Chat } from "#schema/chats/chat.ts";
import { fails } from "../http/responses.ts";

export const tags = ["Chats"];
/** Maximum bytes of bodies that the specification limits more tightly. */
export const MAX_CHAT_BODY_BYTES = 262_144;
export const chatPath = t.Object({ chat: t.String({ format: "uuid", description: "The ID of the chat." }) });

/** For routes that change a chat and return it; 409 when the chat's state does not allow it. */
export const changesChat = {
  user: true as const,
  params: chatPath,
  response: { 200: Chat, ...fails(400, 401, 403, 404, 409) },
};

/** Parses a positive number in a path. Throws 400 for anything else. */
export const parseNumber = (field: string, text: string): number => {
  const number = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(number)) return number;
  throw invalid("Path parameters have invalid values.", [{ field, detail: "must be a whole number above 0" }]);
};
