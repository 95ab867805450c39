// Templates, their versions and the uploaded files that they are created from.
import { sql } from "drizzle-orm";
import { index, integer, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { Acl } from "#schema/workspaces/acl.ts";
import { organizationId, userId } from "./columns.ts";

/** An upload. The bytes are in the blob store under `hash`. */
export const files = sqliteTable(
  "files",
  {
    id: text().primaryKey(),
    /** SHA-256 of the bytes, hex. */
    hash: text().notNull(),
    created_by: userId(),
    /** application/x-tar | application/zip */
    mimetype: text().notNull(),
    size: integer().notNull(),
    created_at: integer().notNull(),
  },
  (table) => [uniqueIndex("files_hash").on(table.created_by, table.hash, table.mimetype)],
);

export const templates = sqliteTable(
  "templates",
  {
    id: text().primaryKey(),
    organization_id: organizationId(),
    name: text().notNull(),
    display_name: text().notNull().default(""),
    description: text().notNull().default(""),
    icon: text().notNull().default(""),
    /** local | docker | external | echo */
    provisioner: text().notNull(),
    active_version_id: text().notNull(),
    created_by: userId(),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
    deleted: integer({ mode: "boolean" }).notNull().default(false),
    deprecation_message: text().notNull().default(""),
    default_ttl_ms: integer().notNull().default(0),
    activity_bump_ms: integer().notNull().default(3_600_000),
    autostop_requirement_days: text({ mode: "json" }).$type<string[]>().notNull().default([]),
    autostop_requirement_weeks: integer().notNull().default(1),
    autostart_requirement_days: text({ mode: "json" })
      .$type<string[]>()
      .notNull()
      .default(["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]),
    allow_user_cancel_workspace_jobs: integer({ mode: "boolean" }).notNull().default(true),
    allow_user_autostart: integer({ mode: "boolean" }).notNull().default(true),
    allow_user_autostop: integer({ mode: "boolean" }).notNull().default(true),
    failure_ttl_ms: integer().notNull().default(0),
    time_til_dormant_ms: integer().notNull().default(0),
    time_til_dormant_autodelete_ms: integer().notNull().default(0),
    require_active_version: integer({ mode: "boolean" }).notNull().default(false),
    /** Number of snapshots on stop that each workspace keeps; 0 disables them. */
    snapshots_on_stop: integer().notNull().default(0),
    /** Days that the trash keeps the files of deleted workspaces; 0: they are deleted immediately. */
    trash_days: integer().notNull().default(7),
    /** Whether scheduled home backups include its workspaces. */
    home_backups: integer({ mode: "boolean" }).notNull().default(true),
    /** off | people | public: who can start a stopped workspace by connecting to it. */
    wake_on_connect: text().notNull().default("people"),
    /** The default coding agent of chats and tasks in its workspaces; empty: none. */
    default_coding_agent: text().notNull().default(""),
    /** Whether its workspaces install their owner's dotfiles. */
    allow_dotfiles: integer({ mode: "boolean" }).notNull().default(true),
    max_port_share_level: text().notNull().default("public"),
    use_classic_parameter_flow: integer({ mode: "boolean" }).notNull().default(true),
    cors_behavior: text().notNull().default("simple"),
    /** Who may use it: maps a user ID to a role. Null in `group_acl`: every member of the organization has the role `use`. */
    user_acl: text({ mode: "json" }).$type<Acl>().notNull().default({}),
    group_acl: text({ mode: "json" }).$type<Acl>(),
  },
  (table) => [
    uniqueIndex("templates_name").on(table.organization_id, sql`lower(${table.name})`).where(sql`${table.deleted} = 0`),
  ],
);

export const template_versions = sqliteTable(
  "template_versions",
  {
    id: text().primaryKey(),
    template_id: text(),
    /** The shard (src/base/shards.ts): that of its template, or its own if it was created before its template. Never changes. */
    part: integer().notNull().default(0),
    organization_id: organizationId(),
    name: text().notNull(),
    message: text().notNull().default(""),
    readme: text().notNull().default(""),
    job_id: text().notNull(),
    file_id: text().notNull(),
    created_by: userId(),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
    archived: integer({ mode: "boolean" }).notNull().default(false),
    /**
     * The parsed template.yaml (src/schema/templates/manifest.ts) once the import has succeeded, or failed only because values of variables
     * are missing; otherwise null.
     */
    manifest: text(),
    /**
     * Copied from the manifest for lists: whether it declares an AI task, and whether its workspaces run outside of the server's control.
     */
    has_ai_task: integer({ mode: "boolean" }).notNull().default(false),
    has_external_agent: integer({ mode: "boolean" }).notNull().default(false),
    /** Whether a Terraform template contains a module that copies the disks of its workspaces. */
    has_snapshot_module: integer({ mode: "boolean" }).notNull().default(false),
    /** Empty, except in rows from before 0.2.0 until the first start (db/templates/variables.ts). */
    variable_values: text({ mode: "json" }).$type<Record<string, string>>().notNull().default({}),
    /** Values of the manifest's variables, encrypted; empty for none. */
    sealed_variable_values: text().notNull().default(""),
  },
  (table) => [
    index("template_versions_template").on(table.template_id, table.created_at),
    index("template_versions_job").on(table.job_id),
    uniqueIndex("template_versions_name")
      .on(table.template_id, table.name)
      .where(sql`${table.template_id} is not null`),
  ],
);
