// Converts a prompt into the content blocks that a coding agent accepts: text and attached files.
import type { MessagePart } from "#schema/chats/chat-part.ts";
import type { ContentBlock, PromptCapabilities } from "#src/acp/connection.ts";
import type { Attachments } from "#src/llm/attachments.ts";
import { isPicture, scaleToFit } from "#src/llm/pictures.ts";
import { formatFile } from "#src/llm/prompt.ts";

/** Maximum files of the conversation that a new session gets; the newest are kept. */
const MAX_FILES = 20;
/** Maximum bytes of a document. Encoding it as text adds a third. */
const MAX_DOCUMENT = 8 * 1024 * 1024;

export const toPromptBlocks = async (
  text: string,
  files: readonly MessagePart[],
  abilities: PromptCapabilities,
  attachments: Attachments,
): Promise<ContentBlock[]> => {
  const blocks = await Promise.all(files.slice(-MAX_FILES).map((part) => toFileBlocks(part, abilities, attachments)));
  return [textBlock(text), ...blocks.flat()];
};

const toFileBlocks = async (
  { file_id = "", name = "attachment" }: MessagePart,
  { images, documents }: PromptCapabilities,
  attachments: Attachments,
): Promise<ContentBlock[]> => {
  const file = await attachments(file_id);
  if (!file) return [textBlock(`[The attachment "${name}" was deleted.]`)];
  const { media_type, bytes } = file;
  if (media_type.startsWith("text/") || media_type === "application/json") {
    return [textBlock(formatFile(file.name, new TextDecoder().decode(bytes)))];
  }
  if (isPicture(media_type)) {
    if (!images) return [textBlock(`[You cannot be shown the attached picture "${file.name}".]`)];
    const shown = await scaleToFit(file_id, file);
    const picture = { type: "image" as const, data: toBase64(shown.file.bytes), mimeType: shown.file.media_type };
    return [picture, ...(shown.note ? [textBlock(`[${file.name}: ${shown.note}]`)] : [])];
  }
  if (!documents || bytes.byteLength > MAX_DOCUMENT) {
    return [textBlock(`[You cannot be given the attached file "${file.name}".]`)];
  }
  const resource = {
    uri: `attachment:///${encodeURIComponent(file.name)}`,
    mimeType: media_type,
    blob: toBase64(bytes),
  };
  return [{ type: "resource", resource }];
};

const textBlock = (text: string): ContentBlock => ({ type: "text", text });
const toBase64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");
