// Converts a prompt into the content blocks that a coding agent accepts: text and attached files.
import type { MessagePart } from "#schema/chats/chat-part.ts";
import type { ContentBlock, PromptCapabilities } from "#src/acp/connection.ts";
import { AttachmentBudget, formatOmitted, type LoadAttachment } from "#src/llm/attachments.ts";
import { isPicture, scaleToFit } from "#src/llm/pictures.ts";
import { formatFile } from "#src/llm/prompt.ts";

/** Maximum files in a prompt. The newest are kept. */
const MAX_FILES = 20;
/** Maximum size of a document. Encoding it as text adds a third. */
const MAX_DOCUMENT_BYTES = 8 * 1024 * 1024;

export const toPromptBlocks = async (
  text: string,
  files: readonly MessagePart[],
  abilities: PromptCapabilities,
  loadAttachment: LoadAttachment,
): Promise<ContentBlock[]> => {
  const budget = new AttachmentBudget();
  const blocks: ContentBlock[] = [];
  // The budget goes to the newest files first.
  for (const part of files.slice(-MAX_FILES).toReversed()) {
    blocks.unshift(...(await toFileBlocks(part, abilities, { loadAttachment, budget })));
  }
  return [textBlock(text), ...blocks];
};

const toFileBlocks = async (
  { file_id = "", name = "attachment" }: MessagePart,
  { images, documents }: PromptCapabilities,
  { loadAttachment, budget }: { readonly loadAttachment: LoadAttachment; readonly budget: AttachmentBudget },
): Promise<ContentBlock[]> => {
  if (budget.isSpent) return [textBlock(formatOmitted(name))];
  const file = await loadAttachment(file_id);
  if (!file) return [textBlock(`[The attachment "${name}" was deleted.]`)];
  const { media_type, bytes } = file;
  if (media_type.startsWith("text/") || media_type === "application/json") {
    if (!budget.take(file)) return [textBlock(formatOmitted(name))];
    return [textBlock(formatFile(file.name, new TextDecoder().decode(bytes)))];
  }
  if (isPicture(media_type)) {
    if (!images) return [textBlock(`[The agent cannot display the attached image "${file.name}".]`)];
    const scaled = await scaleToFit(file_id, file);
    if (!budget.take(scaled.file)) return [textBlock(formatOmitted(name))];
    const picture = { type: "image" as const, data: toBase64(scaled.file.bytes), mimeType: scaled.file.media_type };
    return [picture, ...(scaled.note ? [textBlock(`[${file.name}: ${scaled.note}]`)] : [])];
  }
  if (!documents || bytes.byteLength > MAX_DOCUMENT_BYTES) {
    return [textBlock(`[The agent cannot read the attached file "${file.name}".]`)];
  }
  if (!budget.take(file)) return [textBlock(formatOmitted(name))];
  const resource = {
    uri: `attachment:///${encodeURIComponent(file.name)}`,
    mimeType: media_type,
    blob: toBase64(bytes),
  };
  return [{ type: "resource", resource }];
};

const textBlock = (text: string): ContentBlock => ({ type: "text", text });
const toBase64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");
