// The context that a workspace provides to its chats: instruction files, skills and MCP servers (specification "Chat context").
// `StoredResource` is the stored form with the body, which the API never returns.
import { type Static, Type as t } from "@sinclair/typebox";
import { oneOf } from "../one-of.ts";
import { namedObject } from "../shape-names.ts";

export const RESOURCE_KINDS = ["instruction_file", "skill", "mcp_config", "mcp_server"] as const;
export const RESOURCE_STATUSES = ["ok", "oversize", "unreadable", "invalid", "excluded"] as const;

export const ContextResource = namedObject("ChatContextResource", {
  kind: oneOf(RESOURCE_KINDS),
  status: oneOf(RESOURCE_STATUSES),
  source: t.String({ description: "Path of the file or of the skill's folder, or the MCP server's name." }),
  size_bytes: t.Integer(),
  error: t.String({ description: "Why the status is not ok; with ok, a warning." }),
  skill_name: t.Optional(t.String()),
  skill_description: t.Optional(t.String()),
  tools: t.Optional(t.Array(namedObject("ChatContextTool", { name: t.String(), description: t.String() }))),
});
export type ContextResource = Static<typeof ContextResource>;

export const ChatContext = namedObject("ChatContext", {
  dirty: t.Boolean({ description: "The workspace's context differs from the one the chat has pinned." }),
  dirty_since: t.Optional(t.String({ format: "date-time" })),
  error: t.String({ description: "Why the scan failed as a whole; empty when it succeeded." }),
  resources: t.Array(ContextResource, { description: "Set only when a single chat is read." }),
});
export type ChatContext = Static<typeof ChatContext>;

export type StoredTool = { readonly name: string; readonly description: string; readonly input_schema: unknown };

export type StoredResource = {
  readonly kind: (typeof RESOURCE_KINDS)[number];
  readonly status: (typeof RESOURCE_STATUSES)[number];
  readonly source: string;
  readonly size_bytes: number;
  readonly error: string;
  /** The text of an instruction file, or a skill's SKILL.md. */
  readonly body?: string;
  /** True when the body is only the beginning of a longer file. */
  readonly truncated?: true;
  readonly skill_name?: string;
  readonly skill_description?: string;
  /** Names usually have the server's name and two underscores as a prefix. */
  readonly tools?: readonly StoredTool[];
};
