// Names in the paths of chats.
import { t } from "elysia";
import { invalid } from "#base/errors.ts";

export const tags = ["Chats"];
/** Bytes of the bodies that the specification bounds more tightly. */
export const CHAT_BODY_LIMIT = 262_144;
export const chatPath = t.Object({ chat: t.String({ format: "uuid", description: "Chat id." }) });

/** A positive number in a path. Throws 400 for anything else. */
export const numberOf = (field: string, text: string): number => {
  const number = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(number)) return number;
  throw invalid("Path parameters have invalid values.", [{ field, detail: "must be a positive integer" }]);
};
