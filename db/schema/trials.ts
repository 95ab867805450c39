// Trials: one prompt tried in several ways, each in a fork. A row stands for all ways of one request. Inserted in the batch of the
// fork; written by the keeper of trials from then on, each time only while it is what the keeper has read.
import { index, integer, primaryKey, text } from "drizzle-orm/sqlite-core";
import type { TrialChanges, TrialCheck, TrialDiff, TrialStatus, WayStatus } from "#schema/chats/trial.ts";
import { organizationId, userId } from "./columns.ts";
import { quietTable } from "./touching.ts";
import { workspaces } from "./workspaces.ts";

export type StoredWay = {
  readonly number: number;
  readonly prompt: string;
  /** What it was asked for; null: the model of the chat. */
  readonly model_config_id: string | null;
  readonly coding_agent: string | null;
  readonly workspace_id: string;
  readonly chat_id: string;
  readonly status: WayStatus;
  readonly error: string;
  /** The prompt in its chat; null until the chat has it. */
  readonly message_id: number | null;
  /** Turns of its chat that were begun by the prompt or by its owner since: each is checked once. */
  readonly turn: number;
  /** Its chat is to be interrupted, which is not known to have ended yet. */
  readonly interrupts: boolean;
  /** Its changes were looked at since its last turn. */
  readonly measured: boolean;
  readonly changes: TrialChanges | null;
  readonly changes_error: string;
  readonly check: TrialCheck | null;
  readonly started_at: number | null;
  readonly ended_at: number | null;
  /** Its workspace is deleted and its chat is in the archive. */
  readonly gone: boolean;
};

/** The way that is kept, with the ids of the copy of its files and of the copy of the files that they replace. */
export type StoredKeep = {
  readonly number: number;
  readonly snapshot_id: string;
  readonly safety_id: string;
  /** Its files and its chat are in the first workspace: everything else may go. */
  readonly restored: boolean;
};

export const trials = quietTable(
  "trials",
  {
    id: text().primaryKey(),
    chat_id: text().notNull(),
    workspace_id: text()
      .notNull()
      .references(() => workspaces.id),
    organization_id: organizationId(),
    owner_id: userId(),
    /** What makes its workspaces and chats. */
    fork_id: text().notNull(),
    status: text().$type<TrialStatus>().notNull(),
    error: text().notNull().default(""),
    check_command: text().notNull().default(""),
    check_timeout_seconds: integer().notNull(),
    ways: text({ mode: "json" }).$type<readonly StoredWay[]>().notNull(),
    keep: text({ mode: "json" }).$type<StoredKeep>(),
    /** How many of its ways count to the limit of its owner. */
    open_ways: integer().notNull(),
    /** Goes up with each change. */
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

/** What a way has changed, apart since it is large and seldom read. */
export const trial_diffs = quietTable(
  "trial_diffs",
  {
    trial_id: text().notNull(),
    number: integer().notNull(),
    folders: text({ mode: "json" }).$type<TrialDiff["folders"]>().notNull(),
  },
  (table) => [primaryKey({ columns: [table.trial_id, table.number] })],
);
