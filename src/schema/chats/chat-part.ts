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

const text = (description?: string) => t.Optional(t.String(description ? { description } : {}));
const json = (description: string) => t.Optional(t.Unknown({ description }));

export const MessagePart = t.Object({
  type: named("ChatMessagePartType", oneOf(PART_TYPES)),
  text: text(),
  content: text("The code in a diff that a comment refers to."),
  title: text(),
  url: text(),
  name: text(),
  media_type: text(),
  file_name: text(),
  source_id: text(),
  start_line: t.Optional(t.Integer()),
  end_line: t.Optional(t.Integer()),
  file_id: text(),
  tool_call_id: text(),
  tool_name: text(),
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
  is_error: t.Optional(t.Boolean()),
  is_media: t.Optional(t.Boolean()),
  provider_executed: t.Optional(t.Boolean()),
  context_file_path: text("The path of the instruction file that the chat follows."),
  context_file_agent_id: text("The agent of the workspace that contains it."),
  context_file_truncated: t.Optional(
    t.Boolean({ description: "Whether the file is larger than 64 KiB, so that only its beginning is used." }),
  ),
  skill_name: text(),
  skill_description: text(),
  hook_rewritten: t.Optional(t.Boolean({ description: "Whether a lifecycle hook replaced the model's arguments." })),
  created_at: optionalTime("When the call or result arrived, or when reasoning began."),
  completed_at: optionalTime("When reasoning ended or was interrupted."),
});
/** A part as stored. `provider_metadata` is kept for the provider that sent it and never shown. */
export type MessagePart = Static<typeof MessagePart> & {
  provider_metadata?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** The skill's folder. Never shown. */
  skill_dir?: string;
  /** SHA-256 of the text the chat uses, which is in its snapshot. Never shown. */
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
  // Most live parts are a few characters of text, and there are thousands of them.
  if (part.type === "text" && part.provider_metadata === undefined) return part;
  const { provider_metadata: _, skill_dir: __, context_file_hash: ___, ...known } = part;
  const { file_id, mcp_server_config_id, context_file_agent_id, ...shown } = known;
  return {
    ...shown,
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
  text: text(),
  content: text(),
  file_id: text(),
  file_name: text(),
  start_line: t.Optional(t.Integer()),
  end_line: t.Optional(t.Integer()),
});
export type InputPart = Static<typeof InputPart>;
