// MCP servers that an organization offers to its chats. Written by src/api/mcp. The tokens of signed-in users are stored with their
// linked accounts (external_auth_links), under the provider `mcp:<id>`.
import { integer, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { McpAuth, McpAvailability, McpOAuth, McpTransport } from "#schema/chats/mcp-server.ts";
import { organizationId } from "./columns.ts";

export const mcp_servers = sqliteTable(
  "mcp_servers",
  {
    id: text().primaryKey(),
    organization_id: organizationId(),
    /** The prefix of its tools' names. */
    slug: text().notNull(),
    display_name: text().notNull(),
    description: text().notNull(),
    icon: text().notNull(),
    url: text().notNull(),
    transport: text().$type<McpTransport>().notNull(),
    auth_type: text().$type<McpAuth>().notNull(),
    /** The header for the API key. */
    api_key_header: text().notNull(),
    /** The OAuth2 client without its secret; null for other auth types. */
    oauth2: text({ mode: "json" }).$type<McpOAuth>(),
    /** API key, custom headers and client secret as JSON, encrypted (src/base/encryption.ts) for `mcp_server:<id>`. */
    sealed_secrets: text().notNull(),
    tool_allow_list: text({ mode: "json" }).$type<string[]>().notNull(),
    tool_deny_list: text({ mode: "json" }).$type<string[]>().notNull(),
    availability: text().$type<McpAvailability>().notNull(),
    enabled: integer({ mode: "boolean" }).notNull(),
    /** Whether the model must state why it calls a tool. */
    model_intent: integer({ mode: "boolean" }).notNull(),
    /** Whether chats in plan mode may use it. */
    allow_in_plan_mode: integer({ mode: "boolean" }).notNull(),
    /** Incremented by every change. Connections of older versions are not reused. */
    version: integer().notNull(),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
  },
  (table) => [uniqueIndex("mcp_servers_slug").on(table.organization_id, table.slug)],
);
