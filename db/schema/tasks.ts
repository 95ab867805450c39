// Tasks: a workspace created for one prompt, and the chat that works on it. Inserted in the batch that creates the workspace.
import { sql } from "drizzle-orm";
import { index, integer, text } from "drizzle-orm/sqlite-core";
import { uncachedTable } from "./cache-dependencies.ts";
import { organizations, users } from "./users.ts";
import { workspaces } from "./workspaces.ts";

/** An agent's last messages, shown while the workspace is stopped. */
export type TaskSnapshot = { readonly messages: readonly unknown[]; readonly at: number };

export const tasks = uncachedTable(
  "tasks",
  {
    id: text().primaryKey(),
    organization_id: text()
      .notNull()
      .references(() => organizations.id),
    owner_id: text()
      .notNull()
      .references(() => users.id),
    name: text().notNull(),
    display_name: text().notNull(),
    workspace_id: text()
      .notNull()
      .unique()
      .references(() => workspaces.id),
    /** Chosen in advance. The chat is created when the workspace is usable. */
    chat_id: text().notNull(),
    prompt: text().notNull(),
    /** The coding agent of the chat; null: a model. */
    coding_agent: text(),
    /** Settings of the chat; null: the owner's defaults. */
    model_config_id: text(),
    reasoning_effort: text().notNull().default(""),
    /** When the chat got the prompt, or when delivery was first tried; null before. */
    delivered_at: integer(),
    /** Why the prompt cannot be delivered; empty if it can. */
    problem: text().notNull().default(""),
    snapshot: text({ mode: "json" }).$type<TaskSnapshot>(),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
    deleted: integer({ mode: "boolean" }).notNull().default(false),
  },
  (table) => [
    index("tasks_name").on(table.owner_id, sql`lower(${table.name})`),
    index("tasks_created").on(table.created_at).where(sql`${table.deleted} = 0`),
  ],
);
