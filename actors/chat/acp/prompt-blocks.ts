// Converts a prompt into the content blocks that a coding agent accepts: text and attached files.
import type { MessagePart } from "#schema/chats/chat-part.ts";
import type { ContentBlock, PromptAbilities } from "#src/acp/connection.ts";
import type { Attachments } from "#src/llm/attachments.ts";
import { fitted, isPicture } from "#src/llm/pictures.ts";
import { fenced } from "#src/llm/prompt.ts";

/** Maximum files of the conversation that a new session gets; the newest are kept. */
const MAX_FILES = 20;
/** Maximum bytes of a document. Encoding it as text adds a third. */
const MAX_DOCUMENT = 8 * 1024 * 1024;

export const promptBlocks = async (
  text: string,
  files: readonly MessagePart[],
  abilities: PromptAbilities,
  attachments: Attachments,
): Promise<ContentBlock[]> => {
  const blocks = await Promise.all(files.slice(-MAX_FILES).map((part) => fileBlocks(part, abilities, attachments)));
  return [words(text), ...blocks.flat()];
};

const fileBlocks = async (
  { file_id = "", name = "attachment" }: MessagePart,
  { images, documents }: PromptAbilities,
  attachments: Attachments,
): Promise<ContentBlock[]> => {
  const file = await attachments(file_id);
  if (!file) return [words(`[The attachment "${name}" was deleted.]`)];
  const { media_type, bytes } = file;
  if (media_type.startsWith("text/") || media_type === "application/json") {
    return [words(fenced(file.name, new TextDecoder().decode(bytes)))];
  }
  if (isPicture(media_type)) {
    if (!images) return [words(`[You cannot be shown the attached picture "${file.name}".]`)];
    const shown = await fitted(file_id, file);
    const picture = { type: "image" as const, data: base64(shown.file.bytes), mimeType: shown.file.media_type };
    return [picture, ...(shown.note ? [words(`[${file.name}: ${shown.note}]`)] : [])];
  }
  if (!documents || bytes.byteLength > MAX_DOCUMENT) {
    return [words(`[You cannot be given the attached file "${file.name}".]`)];
  }
  const resource = { uri: `attachment:///${encodeURIComponent(file.name)}`, mimeType: media_type, blob: base64(bytes) };
  return [{ type: "resource", resource }];
};

const words = (text: string): ContentBlock => ({ type: "text", text });
const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");
