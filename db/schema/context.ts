// What workspaces tell of instructions, skills and MCP servers, and which of it each chat has pinned. Snapshots are stored once, by their
// digest, and go when nobody names them. Written by the agent actor (workspace_contexts, and dirty_since in SQL alone) and by the chat
// actor (chat_contexts); personal skills by src/api/users.
import { index, integer, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { StoredResource } from "#schema/chats/chat-context.ts";
import { chats } from "./chats.ts";
import { userId } from "./columns.ts";
import { quietTable } from "./touching.ts";
import { workspaces } from "./workspaces.ts";

export const context_snapshots = quietTable("context_snapshots", {
  /** SHA-256 of everything in it, hex. */
  id: text().primaryKey(),
  /** The same without MCP: a chat is dirty when this differs. */
  hash: text().notNull(),
  resources: text({ mode: "json" }).$type<StoredResource[]>().notNull(),
  /** What was wrong with the scan as a whole; empty when nothing was. */
  error: text().notNull(),
});

/** What the workspace's agent has pushed last. */
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

/** What a chat goes by until it is pinned again. */
export const chat_contexts = quietTable(
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
    /** Since when the workspace tells something else; null while it does not. */
    dirty_since: integer(),
  },
  (table) => [index("chat_contexts_snapshot").on(table.snapshot)],
);

export const user_skills = quietTable(
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
