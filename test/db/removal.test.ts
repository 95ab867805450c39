// For every column with the ID of a user, an organization, a workspace or a chat: its rows are deleted together with the entity
// (db/removal.ts), or stay for a reason that is listed here.
import { expect, test } from "bun:test";
import { getTableName, is } from "drizzle-orm";
import { getTableConfig, SQLiteTable } from "drizzle-orm/sqlite-core";
import { DELETED_WITH, type Parent } from "#db/removal.ts";
import * as schema from "#db/schema/index.ts";

/** The table of each kind of entity, and the names of columns that contain its ID even without a foreign key. */
const PARENTS: Readonly<Record<Parent, readonly [table: string, ...columns: string[]]>> = {
  user: ["users", "user_id", "owner_id"],
  organization: ["organizations", "organization_id"],
  workspace: ["workspaces", "workspace_id"],
  chat: ["chats", "chat", "chat_id"],
};

const REPORT = "a report about the past";
const OWNED = "a user who owns one that exists cannot be deleted";
const SHARED = "other users keep using it";
const CHATS = "belongs to the user's chats, which an administrator can still read";
const SHORT = "deleted when the work is done";
const DELETED_BEFORE =
  "must be deleted before the organization; the rows of deleted ones are the history of their builds";
const LEFT_CHATS = "belongs to a former member's chats, which its owner can read but not continue";
const KEEPER = "its keeper deletes it when the work is done";
const HISTORY = "the history of a deleted workspace can be read";
const SLICES = "deleted by actors/chat/storage/purge.ts, in slices or with more than the row";

const STAYS: Readonly<Record<Parent, Readonly<Record<string, string>>>> = {
  user: {
    "audit_logs.user_id": REPORT,
    "chat_files.owner_id": CHATS,
    "chats.owner_id": CHATS,
    "connection_logs.owner_id": REPORT,
    "connection_logs.user_id": REPORT,
    "files.created_by": SHARED,
    "former_usernames.user_id": "the name stays held for a while",
    "hook_dispatches.owner_id": SHORT,
    "model_reservations.user_id": SHORT,
    "model_spend.user_id": REPORT,
    "notification_deliveries.user_id": SHORT,
    "oauth2_grants.user_id": "deleted with its key",
    "repository_prebuilds.owner_id":
      "belongs to the organization, whose managers see that it fails without its owner, and remove it",
    "tasks.owner_id": OWNED,
    "template_versions.created_by": SHARED,
    "templates.created_by": SHARED,
    "trials.owner_id": CHATS,
    "user_status_changes.user_id": REPORT,
    "workspace_forks.owner_id": OWNED,
    "workspaces.owner_id": OWNED,
  },
  organization: {
    "audit_logs.organization_id": REPORT,
    "chat_files.organization_id": LEFT_CHATS,
    "chats.organization_id": LEFT_CHATS,
    "connection_logs.organization_id": REPORT,
    "jobs.organization_id": "a report about the past; one that still runs may end, and nothing uses its result",
    "model_reservations.organization_id": SHORT,
    "model_spend.organization_id": REPORT,
    "provisioner_daemons.organization_id": REPORT,
    "tasks.organization_id": "has a workspace, and is deleted with it",
    "template_versions.organization_id":
      "the history of deleted workspaces names them, and nothing can be built from them without the organization",
    "templates.organization_id": DELETED_BEFORE,
    "trials.organization_id": LEFT_CHATS,
    "workspace_forks.organization_id": "has a workspace while it runs, and its keeper deletes it",
    "workspaces.organization_id": DELETED_BEFORE,
  },
  workspace: {
    "agents.workspace_id": HISTORY,
    "app_statuses.workspace_id": HISTORY,
    "audit_logs.workspace_id": REPORT,
    "chats.workspace_id": "its chats stay",
    "connection_logs.workspace_id": REPORT,
    "home_backups.workspace_id": "a backup outlives its workspace",
    "model_reservations.workspace_id": SHORT,
    "model_spend.workspace_id": REPORT,
    "tasks.workspace_id": "the task is deleted by its own actor",
    "trials.workspace_id": KEEPER,
    "workspace_activity.workspace_id": HISTORY,
    "workspace_builds.workspace_id": HISTORY,
    "workspace_contexts.workspace_id": "chats that have pinned it keep using it",
    "workspace_forks.workspace_id": KEEPER,
    "workspace_snapshots.workspace_id": "deleted with its files (actors/workspace/trash.ts)",
  },
  chat: {
    "chat_contexts.chat": SLICES,
    "hook_dispatches.chat_id": SLICES,
    "messages.chat": SLICES,
    "model_reservations.chat_id": SHORT,
    "model_spend.chat_id": REPORT,
    "tasks.chat_id": "the task is deleted by its own actor",
    "trials.chat_id": SLICES,
  },
};

/** Returns every column, as `table.column`, that contains the ID of such an entity. */
const listColumns = ([parent, ...names]: readonly string[]): string[] =>
  Object.values(schema).flatMap((table) => {
    if (!is(table, SQLiteTable)) return [];
    const { name, columns, foreignKeys } = getTableConfig(table);
    const referencing = foreignKeys.flatMap((key) => {
      const { foreignTable, columns: referencingColumns } = key.reference();
      return getTableName(foreignTable) === parent ? referencingColumns.map((column) => column.name) : [];
    });
    const matching = columns.filter((column) => referencing.includes(column.name) || names.includes(column.name));
    return matching.map((column) => `${name}.${column.name}`);
  });

test.each(Object.keys(PARENTS) as Parent[])(
  "[ST-30] every row that names a %s is deleted with it, or stays for a reason",
  (parent) => {
    const deleted = DELETED_WITH[parent].map((column) => `${getTableName(column.table)}.${column.name}`);
    const decided = [...deleted, ...Object.keys(STAYS[parent])];
    const columns = listColumns(PARENTS[parent]);
    const advice = `list it in DELETED_WITH.${parent} of db/removal.ts, or with the reason in STAYS.${parent} of this file`;
    expect(columns.filter((column) => !decided.includes(column)).map((column) => `${column}: ${advice}`)).toEqual([]);
    expect(decided.filter((column) => !columns.includes(column))).toEqual([]);
  },
);
