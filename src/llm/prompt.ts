// From a chat's history to what providers are given: text, tool calls and results, attachments, reasoning with what its provider wants
// back. Every call gets a result, and nothing is sent that a provider would refuse.
import type { LanguageModelV4Message, LanguageModelV4Prompt } from "@ai-sdk/provider";
import type { MessagePart } from "#schema/chat-part.ts";
import type { PromptMessage } from "./model.ts";
import { keptFor } from "./provider-tools.ts";

type Role<R extends LanguageModelV4Message["role"]> = Extract<LanguageModelV4Message, { role: R }>;
type UserPart = Role<"user">["content"][number];
type AssistantPart = Role<"assistant">["content"][number];
type ToolPart = Role<"tool">["content"][number];
type Output = Extract<ToolPart, { type: "tool-result" }>["output"];
type Json = Extract<Output, { type: "json" }>["value"];
type Metadata = NonNullable<Role<"user">["providerOptions"]>;

/** An attachment as a model is given it. */
export type Attachment = { readonly name: string; readonly media_type: string; readonly bytes: Uint8Array };
/** Undefined when the file is no longer there. */
export type Attachments = (file_id: string) => Promise<Attachment | undefined>;

export const noAttachments: Attachments = async () => undefined;

/** The history in the providers' common form, in order. Calls that a provider has run itself go back to that `kind` of provider alone. */
export const promptOf = async (
  messages: readonly PromptMessage[],
  attachments: Attachments,
  kind = "",
): Promise<LanguageModelV4Prompt> => {
  const prompt: LanguageModelV4Prompt = [];
  const pictures = newestPictures(messages);
  for (const { role, content } of messages) {
    if (role === "system") prompt.push({ role, content: content.flatMap(textOf).join("\n") });
    else if (role === "user") prompt.push({ role, content: await userParts(content, attachments) });
    else if (role === "assistant") prompt.push({ role, content: assistantParts(content, kind) });
    else addResults(prompt, await toolParts(content, attachments, pictures));
  }
  return answered(prompt).filter(({ content }) => content.length > 0);
};

/** Results of one step stand in one message. */
const addResults = (prompt: LanguageModelV4Prompt, content: ToolPart[]): void => {
  const last = prompt.at(-1);
  if (last?.role === "tool") last.content.push(...content);
  else prompt.push({ role: "tool", content });
};

const userParts = async (content: readonly MessagePart[], attachments: Attachments): Promise<UserPart[]> => {
  const parts: UserPart[] = [];
  for (const part of content) {
    if (part.type === "file") parts.push(await filePart(part, attachments));
    else parts.push(...textOf(part).map((text) => ({ type: "text" as const, text })));
  }
  return parts;
};

const filePart = async (part: MessagePart, attachments: Attachments): Promise<UserPart> => {
  const { file_id = "", name = "attachment" } = part;
  const file = await attachments(file_id);
  if (!file) return { type: "text", text: `[The attachment "${name}" is no longer there.]` };
  const { media_type, bytes } = file;
  if (media_type.startsWith("text/") || media_type === "application/json") {
    return { type: "text", text: fenced(file.name, new TextDecoder().decode(bytes)) };
  }
  return { type: "file", filename: file.name, mediaType: media_type, data: { type: "data", data: bytes } };
};

/** What a part says in words; nothing when it says nothing to a model. */
const textOf = (part: MessagePart): string[] => {
  switch (part.type) {
    case "text":
    case "hook-context":
      return part.text ? [part.text] : [];
    case "file-reference": {
      const { file_name = "", start_line, end_line, content = "" } = part;
      return [fenced(start_line ? `${file_name}:${start_line}-${end_line ?? start_line}` : file_name, content)];
    }
    case "context-file":
      return part.content ? [part.content] : [];
    default:
      return [];
  }
};

const fenced = (name: string, content: string): string => `<file name=${JSON.stringify(name)}>\n${content}\n</file>`;

const assistantParts = (content: readonly MessagePart[], kind: string): AssistantPart[] => {
  const done = new Set(
    content.flatMap(({ type, provider_executed, tool_call_id }) =>
      type === "tool-result" && provider_executed ? [tool_call_id] : [],
    ),
  );
  return content.flatMap((part) =>
    part.provider_executed ? (done.has(part.tool_call_id) ? executedPart(part, kind) : []) : assistantPart(part),
  );
};

/** A call that a provider has run, or its result, for the kind of provider that has run it. */
const executedPart = (part: MessagePart, kind: string): AssistantPart[] => {
  const kept = keptFor(kind, part.provider_metadata);
  if (!kept) return [];
  const { tool_call_id: toolCallId = "", tool_name: toolName = "", args = {}, is_error } = part;
  const providerOptions = kept.options as Metadata;
  if (part.type === "tool-call") {
    return [{ type: "tool-call", toolCallId, toolName, input: args, providerExecuted: true, providerOptions }];
  }
  const output: Output = { type: is_error ? "error-json" : "json", value: (kept.result ?? null) as Json };
  return [{ type: "tool-result", toolCallId, toolName, output, providerOptions }];
};

const assistantPart = (part: MessagePart): AssistantPart[] => {
  const options = part.provider_metadata ? { providerOptions: part.provider_metadata as Metadata } : {};
  switch (part.type) {
    case "text":
      return part.text ? [{ type: "text", text: part.text, ...options }] : [];
    case "reasoning":
      // Without a signature providers refuse it, or take it for something the user said.
      return part.provider_metadata ? [{ type: "reasoning", text: part.text ?? "", ...options }] : [];
    case "tool-call": {
      const { tool_call_id: toolCallId = "", tool_name: toolName = "", args = {} } = part;
      return [{ type: "tool-call", toolCallId, toolName, input: args, ...options }];
    }
    default:
      return [];
  }
};

/** Pictures that a model is shown again; of older ones it has made what it could. */
const PICTURES = 8;

const newestPictures = (messages: readonly PromptMessage[]): ReadonlySet<MessagePart> =>
  new Set(
    messages
      .filter(({ role }) => role === "tool")
      .flatMap(({ content }) => content.filter(({ is_media }) => is_media))
      .slice(-PICTURES),
  );

const toolParts = async (
  content: readonly MessagePart[],
  attachments: Attachments,
  pictures: ReadonlySet<MessagePart>,
): Promise<ToolPart[]> => {
  const parts: ToolPart[] = [];
  for (const part of content) {
    const made = toolPart(part);
    const file = pictures.has(part) ? await attachments(pictureIn(part.result)) : undefined;
    for (const one of made) parts.push(file && one.type === "tool-result" ? shownTo(one, file) : one);
  }
  return parts;
};

/** The id of the file; empty where there is none. */
const pictureIn = (result: unknown): string => {
  const { image } = (result ?? {}) as { image?: { file_id?: unknown } };
  return typeof image?.file_id === "string" ? image.file_id : "";
};

/** The result in words, and the picture. */
const shownTo = (part: Extract<ToolPart, { type: "tool-result" }>, file: Attachment): ToolPart => {
  const { output } = part;
  const text = JSON.stringify("value" in output ? output.value : null);
  const data = { type: "data" as const, data: file.bytes };
  return {
    ...part,
    output: {
      type: "content",
      value: [
        { type: "text", text },
        { type: "file", mediaType: file.media_type, data },
      ],
    },
  };
};

const toolPart = (part: MessagePart): ToolPart[] => {
  if (part.type !== "tool-result") return [];
  const { tool_call_id: toolCallId = "", tool_name: toolName = "", result = null, is_error } = part;
  const value = result as Json;
  const output: Output =
    typeof value === "string"
      ? { type: is_error ? "error-text" : "text", value }
      : { type: is_error ? "error-json" : "json", value };
  return [{ type: "tool-result", toolCallId, toolName, output }];
};

/** Providers refuse a call without its result: one that was lost is said to be so. */
const answered = (prompt: LanguageModelV4Prompt): LanguageModelV4Prompt => {
  const given = new Set(
    prompt.flatMap((one) =>
      one.role === "tool" ? one.content.flatMap((part) => ("toolCallId" in part ? [part.toolCallId] : [])) : [],
    ),
  );
  return prompt.flatMap((one, index): LanguageModelV4Prompt => {
    if (one.role !== "assistant") return [one];
    const lost = one.content.flatMap((part): ToolPart[] =>
      part.type === "tool-call" && !part.providerExecuted && !given.has(part.toolCallId)
        ? [{ type: "tool-result", toolCallId: part.toolCallId, toolName: part.toolName, output: LOST }]
        : [],
    );
    if (lost.length === 0) return [one];
    const next = prompt[index + 1];
    if (next?.role === "tool") {
      next.content.push(...lost);
      return [one];
    }
    return [one, { role: "tool", content: lost }];
  });
};

const LOST: Output = { type: "error-text", value: "There is no result of this call." };
