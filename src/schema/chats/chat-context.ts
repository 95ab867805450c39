// The context that a workspace provides to its chats: instruction files, skills and MCP servers (specification "Chat context").
// `StoredResource` is the stored form with the body, which the API never returns.
import { type Static, Type as t } from "@sinclair/typebox";
import { optionalTime } from "../fields.ts";
import { oneOf } from "../one-of.ts";
import { namedObject } from "../shape-names.ts";

export const RESOURCE_KINDS = ["instruction_file", "skill", "mcp_config", "mcp_server"] as const;
export const RESOURCE_STATUSES = ["ok", "oversize", "unreadable", "invalid", "excluded"] as const;

export const ContextResource = namedObject("ChatContextResource", {
  kind: oneOf(
    RESOURCE_KINDS,
    "The kind of resource. `mcp_config`: a file that declares MCP servers. `mcp_server`: a server declared in such a file.",
  ),
  status: oneOf(
    RESOURCE_STATUSES,
    "Whether the chat can use the resource. `ok`: it can. `oversize`: the file is too large. `excluded`: the limit for the whole context was reached.",
  ),
  source: t.String({ description: "The path of the file or the skill's folder, or the name of the MCP server." }),
  size_bytes: t.Integer({ description: "The size of the file or of the server's tool definitions, in bytes." }),
  error: t.String({ description: "Why the status is not `ok`. If it is `ok`, a warning." }),
  skill_name: t.Optional(t.String({ description: "The name of the skill. Only for the kind `skill`." })),
  skill_description: t.Optional(
    t.String({ description: "When the model should read the skill. Only for the kind `skill`." }),
  ),
  tools: t.Optional(
    t.Array(
      namedObject("ChatContextTool", {
        name: t.String({ description: "The name of the tool, without the prefix for its server." }),
        description: t.String(),
      }),
      { description: "The tools of the server. Only for the kind `mcp_server`." },
    ),
  ),
});
export type ContextResource = Static<typeof ContextResource>;

export const ChatContext = namedObject("ChatContext", {
  dirty: t.Boolean({ description: "Whether the workspace's context differs from the one pinned to the chat." }),
  dirty_since: optionalTime("When the difference was first noticed; absent if `dirty` is false."),
  error: t.String({ description: "Why the whole scan failed; empty if it succeeded." }),
  resources: t.Array(ContextResource, {
    description: "The files, skills and MCP servers in the context. Only returned for a single chat.",
  }),
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
