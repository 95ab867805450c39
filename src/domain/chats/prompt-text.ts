// Prompts that people save: cleaned of what cannot be seen, so that what a model is told is what stands on the page (facts/chats 4.15).
import { invalidField } from "#base/errors.ts";
import { PROMPT_BYTES } from "#schema/chats/chat-config.ts";

/** Controls, bidirectional and zero-width characters, tags: everything that takes no room, but for tabs and line ends. */
const INVISIBLE = /(?![\n\t])[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu;

/** The cleaned text. 400 when it is still longer than 128 KiB. */
export const cleanPrompt = (field: string, text: string): string => {
  const clean = text.replaceAll("\r\n", "\n").replaceAll(INVISIBLE, "").trim();
  if (Buffer.byteLength(clean) > PROMPT_BYTES) throw invalidField(field, "must be at most 128 KiB");
  return clean;
};
