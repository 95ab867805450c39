// Wire shapes of message parts, the content of chat messages, stored and streamed (specification "Message part", facts/chats 3).
import { type Static, Type as t } from "@sinclair/typebox";
import { optionalTime } from "../fields.ts";
import { NullableUuid, nullableUuid } from "../nullable-uuid.ts";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";

export const PART_TYPES = [
  "text",
  "reasoning",
  "tool-call",
  "tool-result",
  "source",
  "file",
  "file-reference",
  "context-file",
  "skill",
  "hook-context",
  "hook-notice",
] as const;

const text = (description: string) => t.Optional(t.String({ description }));
const flag = (description: string) => t.Optional(t.Boolean({ description }));
const line = (description: string) => t.Optional(t.Integer({ description }));
const json = (description: string) => t.Optional(t.Unknown({ description }));

export const toolCallId = t.String({
  description: "The ID of the tool call, assigned by the model's provider or the server.",
});

const startLine = line("For `file-reference`: the first line of the quoted code, starting at 1.");
const endLine = line("For `file-reference`: the last line of the quoted code.");

export const MessagePart = t.Object({
  type: named(
    "ChatMessagePartType",
    oneOf(
      PART_TYPES,
      "The type of the part, which decides which fields are set. `source`: a web page that the answer is based on. `file-reference`: quoted lines of a file. `context-file`, `skill`: an instruction file or skill of the workspace. `hook-notice`: a message of a lifecycle hook.",
    ),
  ),
  text: text("For `text`, `reasoning` and `hook-notice`: the text. While streaming, only its next piece."),
  content: text("The code in a diff that a comment refers to."),
  title: text("For `source`: the title of the web page."),
  url: text("For `source`: the URL of the web page."),
  name: text("For `file`: the name of the file."),
  media_type: text("For `file`: the media type of the file, such as `image/png`."),
  file_name: text("For `file-reference`: the path of the file."),
  source_id: text("For `source`: the provider's ID for the source."),
  start_line: startLine,
  end_line: endLine,
  file_id: text("For `file`: the ID of an uploaded file."),
  tool_call_id: text("For `tool-call` and `tool-result`: the ID that connects a result with its call."),
  tool_name: text("For `tool-call` and `tool-result`: the name of the tool."),
  mcp_server_config_id: text("The organization's MCP server that provides the tool."),
  args: json("The arguments of the call."),
  parsed_commands: t.Optional(
    t.Array(t.Array(t.String()), {
      description:
        "For `execute`: the program of each simple command in the call, and its first argument that is not a flag.",
    }),
  ),
  args_delta: text("Only while streaming: the next part of the call's arguments, as JSON text."),
  result: json("The result of the call."),
  result_delta: text("Only while streaming: the next part of the result."),
  result_reset: t.Optional(t.Boolean({ description: "Only while streaming: discard the result received so far." })),
  is_error: flag("For `tool-result`: whether the call failed, was denied or was canceled."),
  is_media: flag("For `tool-result`: whether the result contains an image."),
  provider_executed: flag("Whether the model's provider runs the tool, such as a web search."),
  context_file_path: text("The path of the instruction file that the chat follows."),
  context_file_agent_id: text("The agent of the workspace that contains it."),
  context_file_truncated: t.Optional(
    t.Boolean({ description: "Whether the file is larger than 64 KiB, so that only its beginning is used." }),
  ),
  skill_name: text("For `skill`: the name of the skill."),
  skill_description: text("For `skill`: when the model should read the skill."),
  hook_rewritten: t.Optional(t.Boolean({ description: "Whether a lifecycle hook replaced the model's arguments." })),
  created_at: optionalTime("When the call or result arrived, or when reasoning began."),
  completed_at: optionalTime("When reasoning ended or was interrupted."),
});
/** A part as stored. `provider_metadata` is sent back to the provider that has sent it, and never shown. */
export type MessagePart = Static<typeof MessagePart> & {
  provider_metadata?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** The skill's folder. Never shown. */
  skill_dir?: string;
  /** SHA-256 of the text that the chat uses. The text itself is in the chat's context snapshot. Never shown. */
  context_file_hash?: string;
};

/** A part as callers see it, stored or live. */
export const ChatMessagePart = namedObject("ChatMessagePart", {
  ...MessagePart.properties,
  file_id: t.Optional(NullableUuid),
  mcp_server_config_id: t.Optional(NullableUuid),
  context_file_agent_id: t.Optional(NullableUuid),
});
export type ChatMessagePart = Static<typeof ChatMessagePart>;

/** Returns a part without internal data, with optional IDs in the caller's format. */
export const presentPart = (part: MessagePart, compat: boolean): ChatMessagePart => {
  // A fast path for the most frequent parts: thousands of live parts have a few characters of text each.
  if (part.type === "text" && part.provider_metadata === undefined) return part;
  const { provider_metadata: _, skill_dir: __, context_file_hash: ___, ...publicPart } = part;
  const { file_id, mcp_server_config_id, context_file_agent_id, ...withoutIds } = publicPart;
  return {
    ...withoutIds,
    ...(file_id === undefined ? {} : { file_id: nullableUuid(file_id, compat) }),
    ...(mcp_server_config_id === undefined ? {} : { mcp_server_config_id: nullableUuid(mcp_server_config_id, compat) }),
    ...(context_file_agent_id === undefined
      ? {}
      : { context_file_agent_id: nullableUuid(context_file_agent_id, compat) }),
  };
};

/** A part sent by a client; other fields are ignored (facts/chats 3.3). */
export const InputPart = namedObject("ChatInputPart", {
  type: t.String({ description: "The type of the part: `text`, `file` or `file-reference`." }),
  text: text("For `text`: the text; must not be empty."),
  content: text("For `file-reference`: the quoted code."),
  file_id: text("For `file`: the ID of a file that the caller uploaded and that belongs to no other chat."),
  file_name: MessagePart.properties.file_name,
  start_line: startLine,
  end_line: endLine,
});
export type InputPart = Static<typeof InputPart>;
