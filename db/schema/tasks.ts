// Tasks: a workspace made for one prompt, and the chat that works on it there. Made in the batch that makes the workspace.
import { sql } from "drizzle-orm";
import { index, integer, text } from "drizzle-orm/sqlite-core";
import { quietTable } from "./touching.ts";
import { organizations, users } from "./users.ts";
import { workspaces } from "./workspaces.ts";

/** What an agent inside of the workspace has said last, for when it is stopped. */
export type TaskSnapshot = { readonly messages: readonly unknown[]; readonly at: number };

export const tasks = quietTable(
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
    /** Known from the beginning; the chat itself is made when the workspace can be worked in. */
    chat_id: text().notNull(),
    prompt: text().notNull(),
    /** The coding agent that leads the chat; null: a model does. */
    coding_agent: text(),
    /** What the chat is to begin with; null: as the owner's other chats. */
    model_config_id: text(),
    reasoning_effort: text().notNull().default(""),
    /** When the prompt was given to the chat, or since when that is tried; null until then. */
    delivered_at: integer(),
    /** Why it cannot be given; empty when nothing keeps it. */
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
