// Cleans saved prompts of invisible characters, so that the model gets exactly what the page shows (facts/chats 4.15).
import { invalidField } from "#base/errors.ts";
import { PROMPT_BYTES } from "#schema/chats/chat-config.ts";

/** Control, bidirectional and zero-width characters and tags: everything invisible except tabs and newlines. */
const INVISIBLE = /(?![\n\t])[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu;

/** Returns the cleaned text. Rejects with 400 when it is longer than 128 KiB. */
export const cleanPrompt = (field: string, text: string): string => {
  const clean = text.replaceAll("\r\n", "\n").replaceAll(INVISIBLE, "").trim();
  if (Buffer.byteLength(clean) > PROMPT_BYTES) throw invalidField(field, "must be at most 128 KiB");
  return clean;
};
