// Workspaces, their builds and the resources that builds created. Written only by the workspace actor; the agents' rows
// (db/schema/agents.ts) are inserted by its build and then belong to the agent actor.
import { sql } from "drizzle-orm";
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { Acl } from "#schema/workspaces/acl.ts";
import { uncachedTable } from "./cache-dependencies.ts";
import { organizationId, userId } from "./columns.ts";
import { templates } from "./templates.ts";

export const workspaces = sqliteTable(
  "workspaces",
  {
    id: text().primaryKey(),
    owner_id: userId(),
    organization_id: organizationId(),
    template_id: text()
      .notNull()
      .references(() => templates.id),
    name: text().notNull(),
    automatic_updates: text().$type<"always" | "never">().notNull().default("never"),
    autostart_schedule: text(),
    /** The schedule was set by someone without access to the workspace: its starts give the agents none of the owner's data. */
    autostart_no_user_data: integer({ mode: "boolean" }).notNull().default(false),
    ttl_ms: integer(),
    favorite: integer({ mode: "boolean" }).notNull().default(false),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
    last_used_at: integer().notNull(),
    dormant_at: integer(),
    deleting_at: integer(),
    next_start_at: integer(),
    deleted: integer({ mode: "boolean" }).notNull().default(false),
    /** The workspace is deleted and its files are in the trash until then; null: the files are deleted, or the workspace is not. */
    trashed_until: integer(),
    /** Size of those files; null: unknown. */
    trashed_bytes: integer(),
    /** Who else has access: maps a user ID to a role. IDs of organizations in `group_acl` represent all members. */
    user_acl: text({ mode: "json" }).$type<Acl>().notNull().default({}),
    group_acl: text({ mode: "json" }).$type<Acl>().notNull().default({}),
    /** When someone last lost access to it: agents whose token is older get a new one. */
    access_lost_at: integer(),
    /** The task that it was created for (db/schema/tasks.ts). */
    task_id: text(),
    /** The shard (src/base/shards.ts): that of its first owner, or for a prebuild of its template. Never changes. */
    part: integer().notNull().default(0),
    /** The build with the highest number. Only its agents are alive. */
    latest_build_id: text().notNull(),
    /** The status of the latest build, as src/schema/workspaces/build.ts derives it, stored for lists. */
    status: text().notNull().default("pending"),
    /** Incremented by every committed change of the workspace, its builds and its agents' snapshot; orders watch events. */
    version: integer().notNull().default(0),
  },
  (table) => [
    uniqueIndex("workspaces_name").on(table.owner_id, sql`lower(${table.name})`).where(sql`${table.deleted} = 0`),
    index("workspaces_template").on(table.template_id),
    // For lists and counts (db/workspaces/lists.ts).
    index("workspaces_list").on(table.owner_id, table.status, sql`lower(${table.name})`),
    index("workspaces_status").on(table.status, table.deleted, table.dormant_at, table.organization_id),
    index("workspaces_alive")
      .on(table.organization_id, table.dormant_at, sql`lower(${table.name})`)
      .where(sql`${table.deleted} = 0`),
    index("workspaces_used").on(table.last_used_at).where(sql`${table.deleted} = 0`),
    index("workspaces_trashed").on(table.trashed_until).where(sql`${table.trashed_until} is not null`),
    index("workspaces_dormant").on(table.dormant_at).where(sql`${table.dormant_at} is not null`),
    // The few shared workspaces, for lists of the people they are shared with.
    index("workspaces_shared")
      .on(table.organization_id)
      .where(sql`(${table.user_acl} <> '{}' or ${table.group_acl} <> '{}')`),
  ],
);

/** Everything that a future build consists of. The planner chooses IDs and keys. */
export type PlannedBuild = {
  readonly id: string;
  readonly job_id: string;
  readonly job_key: number;
  readonly transition: "start" | "stop" | "delete";
  readonly template_version_id: string;
  readonly template_version_preset_id: string | null;
  readonly initiator_id: string;
  readonly reason: string;
  readonly orphan: boolean;
  readonly log_level: string;
  /** Replaces the state that the previous build left; for repairs. */
  readonly told?: string;
  /** Whether the build was requested by someone without access to the workspace, so that its agents get none of the owner's data. */
  readonly no_user_data?: boolean;
  /** A person with access to the workspace asked for this start: from now on, its schedule starts it with the owner's data. */
  readonly approves_schedule?: boolean;
  readonly parameters: readonly { readonly name: string; readonly value: string }[];
  /** For a delete: milliseconds that the files stay in the trash; absent: they are deleted immediately. */
  readonly kept_ms?: number;
  /** The files that replace the workspace's own. */
  readonly restore?: {
    readonly workspace_id: string;
    readonly snapshot_id: string;
    /** If true and the build does not succeed, the workspace keeps its files. */
    readonly once?: boolean;
    /** The value of the template's variable `slipway_snapshot`, encrypted for this workspace; added by its actor. */
    readonly sealed_value?: string;
  };
  /** From the template version: the provisioner for the job, and the upload. */
  readonly provisioner: string;
  readonly file_id: string;
  readonly tags: Readonly<Record<string, string>>;
};

export const workspace_builds = sqliteTable(
  "workspace_builds",
  {
    id: text().primaryKey(),
    workspace_id: text()
      .notNull()
      .references(() => workspaces.id),
    build_number: integer().notNull(),
    job_id: text().notNull().unique(),
    template_version_id: text().notNull(),
    template_version_preset_id: text(),
    initiator_id: text().notNull(),
    transition: text().$type<"start" | "stop" | "delete">().notNull(),
    reason: text().notNull(),
    orphan: integer({ mode: "boolean" }).notNull().default(false),
    log_level: text().notNull().default(""),
    daily_cost: integer().notNull().default(0),
    deadline: integer(),
    max_deadline: integer(),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
    /** The provisioner's state between builds (process IDs, folders); opaque here. */
    state: text(),
    /** The follow-up build, which begins in the commit in which this one succeeds: the start of a restart. */
    followed_by: text({ mode: "json" }).$type<PlannedBuild>(),
    /** For a delete: milliseconds that the files stay in the trash; null: they are deleted immediately. */
    kept_ms: integer(),
    /** The snapshot that it restores, and the workspace of that snapshot. */
    restored_snapshot_id: text(),
    restored_workspace_id: text(),
    /**
     * The value of the template's variable `slipway_snapshot`, encrypted: that of the snapshot restored last. Copied to each later build,
     * since without it the template would create empty disks. Empty for none.
     */
    sealed_snapshot_value: text().notNull().default(""),
    /** If this build fails, later builds do not restore again, because the workspace has its own files. */
    restores_once: integer({ mode: "boolean" }).notNull().default(false),
    /** Requested by someone without access to the workspace: its agents get no secrets, accounts or keys of the owner. */
    no_user_data: integer({ mode: "boolean" }).notNull().default(false),
  },
  (table) => [
    uniqueIndex("workspace_builds_number").on(table.workspace_id, table.build_number),
    index("workspace_builds_restored")
      .on(table.restored_snapshot_id)
      .where(sql`${table.restored_snapshot_id} is not null`),
  ],
);

export const workspace_build_parameters = sqliteTable(
  "workspace_build_parameters",
  {
    build_id: text()
      .notNull()
      .references(() => workspace_builds.id),
    name: text().notNull(),
    value: text().notNull(),
  },
  (table) => [primaryKey({ columns: [table.build_id, table.name] })],
);

export const workspace_resources = sqliteTable(
  "workspace_resources",
  {
    id: text().primaryKey(),
    job_id: text().notNull(),
    transition: text().notNull(),
    type: text().notNull(),
    name: text().notNull(),
    icon: text().notNull().default(""),
    hide: integer({ mode: "boolean" }).notNull().default(false),
    daily_cost: integer().notNull().default(0),
    metadata: text({ mode: "json" })
      .$type<{ key: string; value: string; sensitive: boolean }[]>()
      .notNull()
      .default([]),
    created_at: integer().notNull(),
  },
  (table) => [index("workspace_resources_job").on(table.job_id)],
);

/** Why a workspace's deadline moved, or why the server acted on it automatically. Only the newest rows of each workspace are kept. */
export const workspace_activity = uncachedTable(
  "workspace_activity",
  {
    id: integer().primaryKey(),
    workspace_id: text()
      .notNull()
      .references(() => workspaces.id),
    at: integer().notNull(),
    /** src/schema/workspaces/schedule.ts: ACTIVITY_REASONS */
    reason: text().notNull(),
    detail: text().notNull().default(""),
    /** user | agent | server */
    actor_kind: text().notNull(),
    actor_id: text(),
    actor_name: text().notNull(),
    old_deadline: integer(),
    new_deadline: integer(),
  },
  (table) => [index("workspace_activity_workspace").on(table.workspace_id, table.id)],
);
