// Converts a chat's history to the common format of the providers' packages: text, tool calls and results, attachments, and reasoning with
// its provider's metadata. request/messages.ts adapts it to each receiver.

import type { LanguageModelV4Message, LanguageModelV4Prompt } from "@ai-sdk/provider";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import { AttachmentBudget, formatOmitted, type LoadAttachment } from "./attachments.ts";
import { removeNote } from "./call-notes.ts";
import type { PromptMessage } from "./model.ts";
import { scaleToFit } from "./pictures.ts";
import {
  type Answer,
  acceptsType,
  addAnswers,
  addUser,
  type FileSource,
  findNewestFiles,
  loadAnswers,
  type Output,
  type Pictures,
  UNSEEN_NOTE,
} from "./prompt-results.ts";
import { findStoredExecution } from "./provider-tools.ts";

type Role<R extends LanguageModelV4Message["role"]> = Extract<LanguageModelV4Message, { role: R }>;
type UserPart = Role<"user">["content"][number];
type AssistantPart = Role<"assistant">["content"][number];
type Json = Extract<Output, { type: "json" }>["value"];
type Metadata = NonNullable<Role<"user">["providerOptions"]>;

/** The capabilities of an API and its model. */
export type PromptForm = {
  /** Calls that a provider ran itself are sent back only to this kind of provider. */
  readonly kind: string;
  readonly pictures: Pictures;
  /** Accepts files other than images. */
  readonly documents: boolean;
  /**
   * Which reasoning is sent back. `signed`: reasoning that its provider has encrypted or signed. `tools`: the reasoning text of turns with
   * tool calls, which open models expect; `all_tools`: calls without reasoning also get a placeholder, because the server refuses them
   * otherwise.
   */
  readonly thoughts: "signed" | "none" | "tools" | "all_tools";
  /** Sends providers' signatures back. A provider refuses signatures of other providers or models. */
  readonly signatures: boolean;
};

const DEFAULT_FORM: PromptForm = {
  kind: "",
  pictures: "inside",
  documents: true,
  thoughts: "signed",
  signatures: true,
};

/** Returns the history in the providers' common format, in order. */
export const buildPrompt = async (
  messages: readonly PromptMessage[],
  loadAttachment: LoadAttachment,
  options: Partial<PromptForm> = {},
): Promise<LanguageModelV4Prompt> => {
  const form = { ...DEFAULT_FORM, ...options };
  const prompt: LanguageModelV4Prompt = [];
  const newest = findNewestFiles(messages);
  const thinking = form.thoughts.endsWith("tools") ? findToolTurns(messages) : undefined;
  const executed = findExecutedCalls(messages);
  const budget = new AttachmentBudget();
  const users = new Map<PromptMessage, UserPart[]>();
  const answers = new Map<PromptMessage, Answer[]>();
  for (const message of messages.toReversed()) {
    const { role, content } = message;
    if (role === "user") users.set(message, await toUserParts(content, { loadAttachment, budget }, form));
    else if (role === "tool")
      answers.set(message, await loadAnswers(content, { loadAttachment, budget }, { newest, form }));
  }
  for (const message of messages) {
    const { role, content } = message;
    if (role === "system") prompt.push({ role, content: content.flatMap(toTexts).join("\n") });
    else if (role === "user") addUser(prompt, users.get(message) ?? []);
    else if (role === "assistant") {
      const parts = toAssistantParts(content, form, executed);
      const thoughts = thinking?.has(message) ? toThoughts(content, form) : [];
      const isSigned = form.thoughts === "signed" && form.signatures;
      prompt.push({ role, content: isSigned ? parts : [...thoughts, ...parts.filter(isNotReasoning)] });
    } else addAnswers(prompt, answers.get(message) ?? [], form);
  }
  return prompt.filter(({ content }) => content.length > 0);
};

/** Returns the model's messages of every turn with tool calls: between one user message and the next. */
const findToolTurns = (messages: readonly PromptMessage[]): ReadonlySet<PromptMessage> => {
  const found = new Set<PromptMessage>();
  let turn: PromptMessage[] = [];
  const endTurn = (): void => {
    const hasCalls = turn.some(({ content }) =>
      content.some(({ type, provider_executed }) => type === "tool-call" && !provider_executed),
    );
    if (hasCalls) for (const one of turn) found.add(one);
    turn = [];
  };
  for (const one of messages) {
    if (one.role === "user") endTurn();
    else if (one.role === "assistant") turn.push(one);
  }
  endTurn();
  return found;
};

const isNotReasoning = ({ type }: AssistantPart): boolean => type !== "reasoning";

/** Returns the reasoning as text, or a placeholder if the server requires one for calls. */
const toThoughts = (content: readonly MessagePart[], { thoughts }: PromptForm): AssistantPart[] => {
  const text = content.map((part) => (part.type === "reasoning" ? (part.text ?? "") : "")).join("");
  if (text !== "") return [{ type: "reasoning", text }];
  const needsPlaceholder = thoughts === "all_tools" && content.some(({ type }) => type === "tool-call");
  return needsPlaceholder ? [{ type: "reasoning", text: "." }] : [];
};

const toUserParts = async (
  content: readonly MessagePart[],
  files: FileSource,
  form: PromptForm,
): Promise<UserPart[]> => {
  const parts: UserPart[] = [];
  // The newest files are counted first.
  for (const part of content.toReversed()) {
    if (part.type === "file") parts.unshift(...(await toFileParts(part, files, form)));
    else parts.unshift(...toTexts(part).map((text) => ({ type: "text" as const, text })));
  }
  return parts;
};

const toFileParts = async (
  part: MessagePart,
  { loadAttachment, budget }: FileSource,
  form: PromptForm,
): Promise<UserPart[]> => {
  const { file_id = "", name = "attachment" } = part;
  const text = (words: string): UserPart => ({ type: "text", text: words });
  if (budget.isSpent) return [text(formatOmitted(name))];
  const file = await loadAttachment(file_id);
  if (!file) return [text(`[The attachment "${name}" is no longer there.]`)];
  const { media_type, bytes } = file;
  if (media_type.startsWith("text/") || media_type === "application/json") {
    if (!budget.take(file)) return [text(formatOmitted(name))];
    return [text(formatFile(file.name, new TextDecoder().decode(bytes)))];
  }
  if (!acceptsType(form, media_type)) return [text(`${file.name}: ${UNSEEN_NOTE}`)];
  const scaled = await scaleToFit(file_id, file);
  if (!budget.take(scaled.file)) return [text(formatOmitted(name))];
  const data = { type: "data" as const, data: scaled.file.bytes };
  return [
    { type: "file", filename: file.name, mediaType: scaled.file.media_type, data },
    ...(scaled.note ? [text(`[${file.name}: ${scaled.note}]`)] : []),
  ];
};

/** Returns the text of a part; nothing if it contains none for a model. */
const toTexts = (part: MessagePart): string[] => {
  switch (part.type) {
    case "text":
    case "hook-context":
      return part.text ? [part.text] : [];
    case "file-reference": {
      const { file_name = "", start_line, end_line, content = "" } = part;
      return [formatFile(start_line ? `${file_name}:${start_line}-${end_line ?? start_line}` : file_name, content)];
    }
    case "context-file":
      return part.content ? [part.content] : [];
    default:
      return [];
  }
};

/** Formats a file as part of a text. */
export const formatFile = (name: string, content: string): string =>
  `<file name=${JSON.stringify(name)}>\n${content}\n</file>`;

/** Returns calls that a provider runs itself and that have their result, or will get it when the provider continues a paused response. */
const findExecutedCalls = (messages: readonly PromptMessage[]): ReadonlySet<string | undefined> => {
  const listIds = (content: readonly MessagePart[], type: MessagePart["type"]) =>
    content.flatMap((part) => (part.type === type && part.provider_executed ? [part.tool_call_id] : []));
  const last = messages.at(-1);
  return new Set([
    ...messages.flatMap(({ content }) => listIds(content, "tool-result")),
    ...(last?.role === "assistant" ? listIds(last.content, "tool-call") : []),
  ]);
};

const toAssistantParts = (
  content: readonly MessagePart[],
  { kind, signatures }: PromptForm,
  executed: ReadonlySet<string | undefined>,
): AssistantPart[] =>
  content.flatMap((part) => {
    if (part.provider_executed) return executed.has(part.tool_call_id) ? toExecutedPart(part, kind) : [];
    return toAssistantPart(part, kind, signatures);
  });

/** Returns a provider-executed call or its result, for the kind of provider that ran it. */
const toExecutedPart = (part: MessagePart, kind: string): AssistantPart[] => {
  const stored = findStoredExecution(kind, part.provider_metadata);
  if (!stored) return [];
  const { tool_call_id: toolCallId = "", tool_name: toolName = "", args = {}, is_error } = part;
  const providerOptions = stored.options as Metadata;
  if (part.type === "tool-call") {
    return [{ type: "tool-call", toolCallId, toolName, input: args, providerExecuted: true, providerOptions }];
  }
  const output: Output = { type: is_error ? "error-json" : "json", value: (stored.result ?? null) as Json };
  return [{ type: "tool-result", toolCallId, toolName, output, providerOptions }];
};

const toAssistantPart = (part: MessagePart, kind: string, signatures: boolean): AssistantPart[] => {
  const metadata = signatures && part.provider_metadata ? removeNote(part.provider_metadata) : undefined;
  const options = metadata && Object.keys(metadata).length > 0 ? { providerOptions: metadata as Metadata } : {};
  switch (part.type) {
    case "text":
      return part.text ? [{ type: "text", text: part.text, ...options }] : [];
    case "reasoning":
      // Without its signature a provider refuses it, or mistakes it for the user's text.
      return metadata !== undefined && (kind === "" || kind in metadata)
        ? [{ type: "reasoning", text: part.text ?? "", ...options }]
        : [];
    case "tool-call": {
      const { tool_call_id: toolCallId = "", tool_name: toolName = "", args = {} } = part;
      return [{ type: "tool-call", toolCallId, toolName, input: args, ...options }];
    }
    default:
      return [];
  }
};
