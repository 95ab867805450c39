// Contexts of workspaces (instructions, skills and MCP servers), and the one that each chat has pinned. Snapshots are stored once, by
// digest, and deleted when unreferenced. The agent actor writes workspace_contexts and, with one UPDATE statement,
// chat_contexts.dirty_since. The chat actor writes the rest of chat_contexts, and src/api/users writes personal skills.
import { index, integer, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { StoredResource } from "#schema/chats/chat-context.ts";
import { uncachedTable } from "./cache-dependencies.ts";
import { chats } from "./chats.ts";
import { userId } from "./columns.ts";
import { workspaces } from "./workspaces.ts";

export const context_snapshots = uncachedTable("context_snapshots", {
  /** SHA-256 of its whole content, hex. */
  id: text().primaryKey(),
  /** The digest of the content without MCP servers: a chat is dirty when this differs. */
  hash: text().notNull(),
  resources: text({ mode: "json" }).$type<StoredResource[]>().notNull(),
  /** The error of the whole scan; empty for none. */
  error: text().notNull(),
});

/** The context that a workspace's agent pushed last. */
export const workspace_contexts = sqliteTable(
  "workspace_contexts",
  {
    workspace_id: text()
      .primaryKey()
      .references(() => workspaces.id),
    agent_id: text().notNull(),
    /** Counted by the agent. */
    version: integer().notNull(),
    snapshot: text()
      .notNull()
      .references(() => context_snapshots.id),
    updated_at: integer().notNull(),
  },
  (table) => [index("workspace_contexts_snapshot").on(table.snapshot)],
);

/** The context that a chat has pinned. */
export const chat_contexts = uncachedTable(
  "chat_contexts",
  {
    chat: integer()
      .primaryKey()
      .references(() => chats.key),
    agent_id: text().notNull(),
    snapshot: text()
      .notNull()
      .references(() => context_snapshots.id),
    pinned_at: integer().notNull(),
    /** Since when the workspace's context differs; null while it does not. */
    dirty_since: integer(),
  },
  (table) => [index("chat_contexts_snapshot").on(table.snapshot)],
);

export const user_skills = uncachedTable(
  "user_skills",
  {
    id: text().primaryKey(),
    user_id: userId(),
    name: text().notNull(),
    description: text().notNull(),
    content: text().notNull(),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
  },
  (table) => [uniqueIndex("user_skills_name").on(table.user_id, table.name)],
);
