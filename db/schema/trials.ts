// Trials: one prompt tried in several ways, each in a fork. A row represents all ways of one request. Inserted in the batch of the fork;
// then written only by the keeper of trials, guarded by the revision it has read.
import { index, integer, primaryKey, text } from "drizzle-orm/sqlite-core";
import type { TrialChanges, TrialCheck, TrialDiff, TrialStatus, WayStatus } from "#schema/chats/trial.ts";
import { uncachedTable } from "./cache-dependencies.ts";
import { organizationId, userId } from "./columns.ts";
import { workspaces } from "./workspaces.ts";

export type StoredWay = {
  readonly number: number;
  readonly prompt: string;
  /** The requested model; null: the model of the chat. */
  readonly model_config_id: string | null;
  readonly coding_agent: string | null;
  readonly workspace_id: string;
  readonly chat_id: string;
  readonly status: WayStatus;
  readonly error: string;
  /** The prompt in its chat; null until the chat has it. */
  readonly message_id: number | null;
  /** Number of turns started by the prompt or by its owner since: each is checked once. */
  readonly turn: number;
  /** Its chat must be interrupted and is not known to have stopped. */
  readonly interrupts: boolean;
  /** Its changes were determined since its last turn. */
  readonly measured: boolean;
  readonly changes: TrialChanges | null;
  readonly changes_error: string;
  readonly check: TrialCheck | null;
  readonly started_at: number | null;
  readonly ended_at: number | null;
  /** Its workspace is deleted and its chat is archived. */
  readonly gone: boolean;
};

/** The kept way, with the IDs of the snapshot of its files and of the snapshot of the files that they replace. */
export type StoredKeep = {
  readonly number: number;
  readonly snapshot_id: string;
  readonly safety_id: string;
  /** The first workspace has its files and chat: everything else can be deleted. */
  readonly restored: boolean;
};

export const trials = uncachedTable(
  "trials",
  {
    id: text().primaryKey(),
    chat_id: text().notNull(),
    workspace_id: text()
      .notNull()
      .references(() => workspaces.id),
    organization_id: organizationId(),
    owner_id: userId(),
    /** The fork that creates its workspaces and chats. */
    fork_id: text().notNull(),
    status: text().$type<TrialStatus>().notNull(),
    error: text().notNull().default(""),
    check_command: text().notNull().default(""),
    check_timeout_seconds: integer().notNull(),
    ways: text({ mode: "json" }).$type<readonly StoredWay[]>().notNull(),
    keep: text({ mode: "json" }).$type<StoredKeep>(),
    /** How many of its ways count toward the owner's limit. */
    open_ways: integer().notNull(),
    /** Increases with each change. */
    revision: integer().notNull().default(0),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
  },
  (table) => [
    index("trials_chat").on(table.chat_id, table.created_at),
    index("trials_owner").on(table.owner_id, table.status),
    index("trials_status").on(table.status),
  ],
);

/** The diff of a way, stored separately because it is large and rarely read. */
export const trial_diffs = uncachedTable(
  "trial_diffs",
  {
    trial_id: text().notNull(),
    number: integer().notNull(),
    folders: text({ mode: "json" }).$type<TrialDiff["folders"]>().notNull(),
  },
  (table) => [primaryKey({ columns: [table.trial_id, table.number] })],
);
