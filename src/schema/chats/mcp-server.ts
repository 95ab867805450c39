// Wire shapes of an organization's MCP servers (facts/chats 5.5). Secrets can be set but never read.
import { type Static, Type as t } from "@sinclair/typebox";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";
import { strictObject } from "../strict.ts";
import { iconText, linesText, lineText } from "../text.ts";

export const MCP_TRANSPORTS = ["streamable_http", "sse"] as const;
export const MCP_AUTHS = ["none", "api_key", "custom_headers", "oauth2"] as const;
export const MCP_AVAILABILITIES = ["force_on", "default_on", "default_off"] as const;
export type McpTransport = (typeof MCP_TRANSPORTS)[number];
export type McpAuth = (typeof MCP_AUTHS)[number];
export type McpAvailability = (typeof MCP_AVAILABILITIES)[number];

const names = (description: string) => t.Array(t.String({ maxLength: 256 }), { maxItems: 500, description });
const address = (description: string) => t.String({ maxLength: 2_048, description });

export const McpOAuth = named(
  "McpOAuth",
  strictObject({
    client_id: t.String({
      maxLength: 1_024,
      description: "The client ID that Slipway has at the authorization server.",
    }),
    auth_url: address("The authorization URL, where users sign in."),
    token_url: address("The token URL, where authorization codes are exchanged for tokens."),
    scopes: t.Array(t.String({ maxLength: 256 }), {
      maxItems: 100,
      description: "The scopes that users are asked for. If empty, none are sent.",
    }),
  }),
);
const oauth2 = {
  ...McpOAuth,
  description: "The authorization server that each user signs in to. Needed for the authentication `oauth2`.",
};
export type McpOAuth = Static<typeof McpOAuth>;

const editable = {
  display_name: lineText({ maxLength: 256, description: "The display name of the server; default: its slug." }),
  description: linesText({ maxLength: 4_096, description: "A description of the server for users." }),
  icon: iconText({ maxLength: 2_048 }),
  url: address("The URL of the MCP server."),
  transport: t.String({ maxLength: 64, description: "The transport: `streamable_http` (default) or `sse`." }),
  auth_type: t.String({
    maxLength: 64,
    description: "How Slipway authenticates: `none` (default), `api_key`, `custom_headers` or `oauth2`.",
  }),
  api_key_header: t.String({
    maxLength: 256,
    description: "The header that the API key is sent in; default `Authorization`.",
  }),
  api_key: t.String({ maxLength: 10_240, description: "The API key, as sent in the header. Write-only." }),
  custom_headers: t.Record(t.String(), t.String(), {
    description: "Names and values of additional headers. Write-only.",
  }),
  oauth2,
  oauth2_client_secret: t.String({ maxLength: 10_240, description: "The client secret. Write-only." }),
  tool_allow_list: names("The names of the tools that chats can use, as the server lists them. If empty, all tools."),
  tool_deny_list: names("The names of tools that chats can't use. Takes precedence over `tool_allow_list`."),
  availability: t.String({
    maxLength: 64,
    description:
      "Which chats use the server: all (`force_on`), new chats that choose no servers (`default_on`), or only chats that choose it (`default_off`, the default).",
  }),
  enabled: t.Boolean({ description: "Whether chats can use the server; default true." }),
  model_intent: t.Boolean({
    description: "Whether the model states why it calls a tool. The reason is not sent to the server.",
  }),
  allow_in_plan_mode: t.Boolean({ description: "Whether chats in plan mode can also use the server." }),
};

const slug = t.String({ maxLength: 64, description: "The prefix of the server's tool names." });

// Strict: a misspelled `tool_allow_list` would allow every tool of the server.
const changes = t.Partial(t.Object(editable)).properties;
export const CreateMcpServer = named("CreateMcpServer", strictObject({ ...changes, slug, url: editable.url }));
export type CreateMcpServer = Static<typeof CreateMcpServer>;
export const UpdateMcpServer = named("UpdateMcpServer", strictObject(changes));
export type UpdateMcpServer = Static<typeof UpdateMcpServer>;

const { api_key: _key, custom_headers: _headers, oauth2_client_secret: _secret, ...shown } = editable;

export const McpServerConfig = namedObject("McpServerConfig", {
  id: t.String({ format: "uuid" }),
  organization_id: t.String({ format: "uuid" }),
  slug: t.String({ description: "The prefix of the server's tool names. It can't be changed." }),
  ...shown,
  transport: named(
    "McpTransport",
    oneOf(MCP_TRANSPORTS, "The transport of the MCP protocol. `sse` is the older one, with server-sent events."),
  ),
  auth_type: named(
    "McpAuth",
    oneOf(
      MCP_AUTHS,
      "How Slipway authenticates. `api_key`: with one key for everyone. `custom_headers`: with headers for everyone. `oauth2`: each user signs in.",
    ),
  ),
  availability: named(
    "McpAvailability",
    oneOf(
      MCP_AVAILABILITIES,
      "Which chats use the server. `force_on`: all. `default_on`: new chats that choose no servers, and chats that choose it. `default_off`: only chats that choose it.",
    ),
  ),
  oauth2: t.Optional(oauth2),
  has_secret: t.Boolean({ description: "Whether an API key, headers or a client secret is stored." }),
  custom_header_names: t.Array(t.String(), { description: "The names of the headers in `custom_headers`." }),
  auth_connected: t.Boolean({ description: "Whether the caller has signed in to the server, or doesn't need to." }),
  created_at: t.String({ format: "date-time" }),
  updated_at: t.String({ format: "date-time" }),
});
export type McpServerConfig = Static<typeof McpServerConfig>;

export const TriedMcpServer = namedObject("TriedMcpServer", {
  works: t.Boolean({ description: "Whether the server listed its tools." }),
  problem: t.Optional(t.String({ description: "Why the server is not responding." })),
  tools: t.Array(
    t.Object({
      name: t.String(),
      description: t.String(),
      offered: t.Boolean({ description: "Whether the allow and deny lists let chats use the tool." }),
    }),
  ),
  took_ms: t.Integer({ description: "How long the server took to list its tools, in milliseconds." }),
});
export type TriedMcpServer = Static<typeof TriedMcpServer>;
