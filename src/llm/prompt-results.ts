// Formats tool results for models: as text, with their images and documents. If an API does not accept images in results, they follow in a
// user message. Used by prompt.ts (rules DT-5, MO-42).
import type { LanguageModelV4Message, LanguageModelV4Prompt } from "@ai-sdk/provider";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import type { AttachmentBudget, LoadAttachment } from "./attachments.ts";
import type { PromptMessage } from "./model.ts";
import { isPicture, type ScaledPicture, scaleToFit } from "./pictures.ts";

type Role<R extends LanguageModelV4Message["role"]> = Extract<LanguageModelV4Message, { role: R }>;
type UserPart = Role<"user">["content"][number];
type ToolPart = Role<"tool">["content"][number];
type ResultPart = Extract<ToolPart, { type: "tool-result" }>;
export type Output = ResultPart["output"];
type Json = Extract<Output, { type: "json" }>["value"];

/** Number of recent images that are sent again. The model has already used older ones. */
const MAX_IMAGES = 8;

/** Returns the file IDs that our own tools put into a result. */
const listFileIds = ({ is_media, result }: MessagePart): string[] => {
  if (!is_media) return [];
  const { image, files } = (result ?? {}) as { image?: unknown; files?: unknown };
  const all = [image, ...(Array.isArray(files) ? files : [])] as ({ file_id?: unknown } | null | undefined)[];
  return all.flatMap((one) => (typeof one?.file_id === "string" ? [one.file_id] : []));
};

/** Returns the newest files in a history's results, by result. */
export const findNewestFiles = (messages: readonly PromptMessage[]): ReadonlyMap<MessagePart, readonly string[]> => {
  const all = messages
    .filter(({ role }) => role === "tool")
    .flatMap(({ content }) => content.flatMap((part) => listFileIds(part).map((id) => ({ part, id }))))
    .slice(-MAX_IMAGES);
  return new Map(all.map(({ part }) => [part, all.filter((one) => one.part === part).map(({ id }) => id)]));
};

/** Loads files, and limits how many bytes of them one request contains. */
export type FileSource = { readonly loadAttachment: LoadAttachment; readonly budget: AttachmentBudget };

/** A result, and the files that are sent with it. */
export type Answer = { readonly part: ResultPart; readonly shown: readonly ScaledPicture[] };

export const loadAnswers = async (
  content: readonly MessagePart[],
  { loadAttachment, budget }: FileSource,
  { newest, form }: { readonly newest: ReadonlyMap<MessagePart, readonly string[]>; readonly form: Form },
): Promise<Answer[]> => {
  const answers: Answer[] = [];
  for (const one of content) {
    if (one.type !== "tool-result") continue;
    const shown: ScaledPicture[] = [];
    for (const id of newest.get(one) ?? []) {
      const file = budget.isSpent ? undefined : await loadAttachment(id);
      const scaled = file && (await scaleToFit(id, file));
      // A file that the model does not accept is replaced by a note later.
      if (scaled && (!acceptsType(form, scaled.file.media_type) || budget.take(scaled.file))) shown.push(scaled);
    }
    answers.push({ part: toPart(one), shown });
  }
  return answers;
};

const toPart = ({ tool_call_id = "", tool_name = "", result = null, is_error }: MessagePart): ResultPart => {
  const value = result as Json;
  const output: Output =
    typeof value === "string"
      ? { type: is_error ? "error-text" : "text", value }
      : { type: is_error ? "error-json" : "json", value };
  return { type: "tool-result", toolCallId: tool_call_id, toolName: tool_name, output };
};

/**
 * `inside`: the API accepts images in results. `behind`: images follow in a user message. `none`: the model accepts no images and gets a
 * note.
 */
export type Pictures = "inside" | "behind" | "none";

type Form = { readonly pictures: Pictures; readonly documents: boolean };

/** True if a file of this type can be sent. */
export const acceptsType = ({ pictures, documents }: Form, media_type: string): boolean =>
  isPicture(media_type) ? pictures !== "none" : documents;

/** Adds the results of one step to the prompt in one message, directly followed by their images. */
export const addAnswers = (prompt: LanguageModelV4Prompt, all: readonly Answer[], form: Form): void => {
  const answers = all.map(({ part, shown }): Answer & { omitsFiles: boolean } => {
    const accepted = shown.filter(({ file }) => acceptsType(form, file.media_type));
    return { part, shown: accepted, omitsFiles: accepted.length < shown.length };
  });
  const isInside = form.pictures === "inside";
  const content = answers.map(({ part, shown, omitsFiles }): ToolPart => {
    if (shown.length > 0 && isInside) return toFilePart(part, shown);
    return omitsFiles ? toTextPart(part, [UNSEEN_NOTE]) : part;
  });
  const attachedParts = isInside ? [] : answers.flatMap(toAttachedParts);
  const last = prompt.at(-1);
  const previous = last?.role === "user" ? prompt.at(-2) : last;
  // Results of one step arrive in separate messages; images of earlier results follow after all of them.
  if (previous?.role === "tool" && (last === previous || imageMessages.has(last as Role<"user">))) {
    previous.content.push(...content);
    if (attachedParts.length === 0) return;
    if (last?.role === "user") last.content.push(...attachedParts);
    else pushImages(prompt, attachedParts);
    return;
  }
  prompt.push({ role: "tool", content });
  if (attachedParts.length > 0) pushImages(prompt, attachedParts);
};

/** Messages that contain only images of results. */
const imageMessages = new WeakSet<LanguageModelV4Message>();

const pushImages = (prompt: LanguageModelV4Prompt, content: UserPart[]): void => {
  const message: Role<"user"> = { role: "user", content };
  imageMessages.add(message);
  prompt.push(message);
};

/** Adds a user message. It is merged with images of results directly before it, because some models refuse two user messages in a row. */
export const addUser = (prompt: LanguageModelV4Prompt, content: UserPart[]): void => {
  const last = prompt.at(-1);
  if (last?.role === "user" && imageMessages.has(last)) last.content.push(...content);
  else prompt.push({ role: "user", content });
};

const toAttachedParts = ({ part, shown }: Answer): UserPart[] =>
  shown.flatMap(({ file, note }): UserPart[] => [
    {
      type: "text",
      text: `[${file.name}, from the result of the call ${part.toolCallId} of ${part.toolName}.${note ? ` ${note}` : ""}]`,
    },
    { type: "file", filename: file.name, mediaType: file.media_type, data: { type: "data", data: file.bytes } },
  ]);

/** Returns the result as text, with its files. */
const toFilePart = (part: ResultPart, shown: readonly ScaledPicture[]): ToolPart => ({
  ...part,
  output: {
    type: "content",
    value: [
      { type: "text", text: formatResult(part) },
      ...shown.flatMap(({ file, note }) => [
        ...(note ? [{ type: "text" as const, text: note }] : []),
        {
          type: "file" as const,
          filename: file.name,
          mediaType: file.media_type,
          data: { type: "data" as const, data: file.bytes },
        },
      ]),
    ],
  },
});

const toTextPart = (part: ResultPart, notes: readonly string[]): ToolPart => ({
  ...part,
  output: { type: "text", value: [formatResult(part), ...notes].join("\n") },
});

const formatResult = ({ output }: ResultPart): string => JSON.stringify("value" in output ? output.value : null);

export const UNSEEN_NOTE = "[The picture or document is not shown: this model takes only text.]";
