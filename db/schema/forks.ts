// Forks: workspaces that start with the files of another one, and copies of its chats. A row represents all copies of one request, until
// they have their files. Inserted in the batch of the source snapshot; then written by the keeper of forks.
import { index, integer, text } from "drizzle-orm/sqlite-core";
import type { ForkStatus } from "#schema/workspaces/fork.ts";
import { uncachedTable } from "./cache-dependencies.ts";
import { organizationId, userId } from "./columns.ts";
import { type PlannedBuild, workspaces } from "./workspaces.ts";

/** A chat of the source workspace up to a message, and the title of its copy. */
export type PlannedChat = {
  readonly from_chat_id: string;
  readonly up_to: number;
  readonly chat_id: string;
  /** Defaults to the source chat's title. */
  readonly title?: string;
  /** The coding agent of the copy; defaults to the source chat's, null for a model. */
  readonly coding_agent?: string | null;
};

/** A copy to create. All IDs are chosen with the request, so that it is created only once. */
export type PlannedCopy = {
  readonly workspace_id: string;
  readonly name: string;
  readonly build: PlannedBuild;
  readonly chats: readonly PlannedChat[];
  /** Requested by an application: the copy gets neither the source's autostart schedule nor its automatic updates. */
  readonly is_unscheduled?: boolean;
};

export const workspace_forks = uncachedTable(
  "workspace_forks",
  {
    id: text().primaryKey(),
    /** The workspace whose files are copied. */
    workspace_id: text()
      .notNull()
      .references(() => workspaces.id),
    organization_id: organizationId(),
    /** The owner of the copies. */
    owner_id: userId(),
    snapshot_id: text().notNull(),
    status: text().$type<ForkStatus>().notNull(),
    error: text().notNull().default(""),
    copies: text({ mode: "json" }).$type<readonly PlannedCopy[]>().notNull(),
    /** Why copies could not be created, by the IDs of their workspaces. */
    problems: text({ mode: "json" }).$type<Readonly<Record<string, string>>>().notNull().default({}),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
  },
  (table) => [
    index("workspace_forks_workspace").on(table.workspace_id, table.created_at),
    index("workspace_forks_status").on(table.status),
  ],
);
