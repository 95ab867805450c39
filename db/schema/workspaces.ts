// Workspaces, their builds and what a build brought to life. Written by the workspace actor only; the agents' own rows
// (db/schema/agents.ts) are inserted by its build and belong to the agent actor from then on.
import { sql } from "drizzle-orm";
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { Acl } from "#schema/workspaces/acl.ts";
import { organizationId, userId } from "./columns.ts";
import { templates } from "./templates.ts";
import { quietTable } from "./touching.ts";

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
    ttl_ms: integer(),
    favorite: integer({ mode: "boolean" }).notNull().default(false),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
    last_used_at: integer().notNull(),
    dormant_at: integer(),
    deleting_at: integer(),
    next_start_at: integer(),
    deleted: integer({ mode: "boolean" }).notNull().default(false),
    /** Deleted, with its files in the trash until then; null: they are gone, or it is not deleted. */
    trashed_until: integer(),
    /** Size of these files; null: unknown. */
    trashed_bytes: integer(),
    /** Who else may work with it: user id -> role. Ids of organizations in `group_acl` stand for all members of that organization. */
    user_acl: text({ mode: "json" }).$type<Acl>().notNull().default({}),
    group_acl: text({ mode: "json" }).$type<Acl>().notNull().default({}),
    /** The task it was made for (db/schema/tasks.ts). */
    task_id: text(),
    /** Which part it is of (src/base/parts.ts): by its first owner, a prebuild by its template. Never changes. */
    part: integer().notNull().default(0),
    /** The build with the highest number; only its agents are alive. */
    latest_build_id: text().notNull(),
    /** Of the latest build, as src/schema/workspaces/build.ts derives it: lists look for it here. */
    status: text().notNull().default("pending"),
    /** Raised by every committed change of the workspace, its builds and its agents' snapshot; orders watch events. */
    version: integer().notNull().default(0),
  },
  (table) => [
    uniqueIndex("workspaces_name").on(table.owner_id, sql`lower(${table.name})`).where(sql`${table.deleted} = 0`),
    index("workspaces_template").on(table.template_id),
    // What lists look for, and how they count (db/workspaces/lists.ts).
    index("workspaces_list").on(table.owner_id, table.status, sql`lower(${table.name})`),
    index("workspaces_status").on(table.status, table.deleted, table.dormant_at, table.organization_id),
    index("workspaces_alive")
      .on(table.organization_id, table.dormant_at, sql`lower(${table.name})`)
      .where(sql`${table.deleted} = 0`),
    index("workspaces_used").on(table.last_used_at).where(sql`${table.deleted} = 0`),
    index("workspaces_trashed").on(table.trashed_until).where(sql`${table.trashed_until} is not null`),
    index("workspaces_dormant").on(table.dormant_at).where(sql`${table.dormant_at} is not null`),
    // The few that are shared, for the lists of those they are shared with.
    index("workspaces_shared")
      .on(table.organization_id)
      .where(sql`(${table.user_acl} <> '{}' or ${table.group_acl} <> '{}')`),
  ],
);

/** Everything a build that comes is made of; ids and keys are chosen by anyone who plans it. */
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
  /** Takes the place of what the build before has left; for repairs. */
  readonly told?: string;
  /** True: asked for by someone who may not enter the workspace, so its agents get nothing of its owner's. */
  readonly no_user_data?: boolean;
  readonly parameters: readonly { readonly name: string; readonly value: string }[];
  /** Of a delete: for how many milliseconds the files stay in the trash; absent: they are removed. */
  readonly kept_ms?: number;
  /** The files that the workspace gets in place of its own. */
  readonly restore?: {
    readonly workspace_id: string;
    readonly snapshot_id: string;
    /** True: where the build does not succeed, the workspace keeps the files it has. */
    readonly once?: boolean;
    /** What the template's variable `slipway_snapshot` becomes, sealed for this workspace; added by its actor. */
    readonly sealed_value?: string;
  };
  /** Of the template version: what must do the job, and from which upload. */
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
    /** What the provisioner must remember between builds (process ids, folders); opaque here. */
    state: text(),
    /** Begins in the commit in which this one succeeds: the start of a restart. */
    followed_by: text({ mode: "json" }).$type<PlannedBuild>(),
    /** Of a delete: for how many milliseconds the files stay in the trash; null: they are removed. */
    kept_ms: integer(),
    /** The snapshot whose files it puts in place of the workspace's own, and the workspace that the snapshot is of. */
    restored_snapshot_id: text(),
    restored_workspace_id: text(),
    /**
     * What the template's variable `slipway_snapshot` is, sealed: that of the snapshot restored last. Each build has it from the one before, since
     * without it the template would make empty disks. Empty for none.
     */
    sealed_snapshot_value: text().notNull().default(""),
    /** A later build does not do it again where this one has not succeeded: the workspace has files of its own. */
    restores_once: integer({ mode: "boolean" }).notNull().default(false),
    /** Asked for by someone who may not enter the workspace: its agents get no secrets, accounts or keys of the owner. */
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

/** Why the end of a workspace moved, or why the server did something to it on its own; the newest of each workspace are kept. */
export const workspace_activity = quietTable(
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
