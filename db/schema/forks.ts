// Forks: workspaces that begin with the files of another one, and copies of its chats. A row stands for all copies of one request,
// until they have their files. Inserted in the batch of the snapshot they are made from; written by the keeper of forks from then on.
import { index, integer, text } from "drizzle-orm/sqlite-core";
import type { ForkStatus } from "#schema/workspaces/fork.ts";
import { organizationId, userId } from "./columns.ts";
import { quietTable } from "./touching.ts";
import { type PlannedBuild, workspaces } from "./workspaces.ts";

/** A chat of the first workspace, up to a message, and what its copy is called. */
export type PlannedChat = {
  readonly from_chat_id: string;
  readonly up_to: number;
  readonly chat_id: string;
  /** That of the first chat when absent. */
  readonly title?: string;
  /** Who leads the copy: as the first chat when absent, null for a model. */
  readonly coding_agent?: string | null;
};

/** A copy that is to be made. Everything is chosen when it is asked for, so that it is made once. */
export type PlannedCopy = {
  readonly workspace_id: string;
  readonly name: string;
  readonly build: PlannedBuild;
  readonly chats: readonly PlannedChat[];
};

export const workspace_forks = quietTable(
  "workspace_forks",
  {
    id: text().primaryKey(),
    /** The workspace whose files they begin with. */
    workspace_id: text()
      .notNull()
      .references(() => workspaces.id),
    organization_id: organizationId(),
    /** Whose the copies are. */
    owner_id: userId(),
    snapshot_id: text().notNull(),
    status: text().$type<ForkStatus>().notNull(),
    error: text().notNull().default(""),
    copies: text({ mode: "json" }).$type<readonly PlannedCopy[]>().notNull(),
    /** Why copies could not be made, by the ids of their workspaces. */
    problems: text({ mode: "json" }).$type<Readonly<Record<string, string>>>().notNull().default({}),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
  },
  (table) => [
    index("workspace_forks_workspace").on(table.workspace_id, table.created_at),
    index("workspace_forks_status").on(table.status),
  ],
);
