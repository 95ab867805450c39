// Workspace agents and everything they report. Inserted by the build that made them, then written by the agent actor only.
import { sql } from "drizzle-orm";
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { AgentResources } from "#schema/agents/resources.ts";
import { agentTable, linesTable, quietTable } from "./touching.ts";
import { workspaces } from "./workspaces.ts";

export type DeclaredDevcontainer = { id: string; name: string; workspace_folder: string; config_path: string };

/** By the name of a region; `preferred` is the agent's home. */
export type Latency = Record<string, { latency_ms: number; preferred: boolean }>;

export const agents = agentTable(
  "agents",
  {
    /** Integer key, used by logs and log sources. */
    key: integer().primaryKey(),
    id: text().notNull().unique(),
    workspace_id: text()
      .notNull()
      .references(() => workspaces.id),
    build_id: text().notNull(),
    resource_id: text().notNull(),
    parent_id: text(),
    name: text().notNull(),
    /** SHA-256 of the agent token, hex; null when another agent has taken it. */
    token_hash: text().unique(),
    instance_id: text().notNull().default(""),
    /** all | no_user_data */
    api_key_scope: text().notNull().default("all"),
    architecture: text().notNull(),
    operating_system: text().notNull(),
    directory: text().notNull().default(""),
    environment_variables: text({ mode: "json" }).$type<Record<string, string>>().notNull().default({}),
    display_apps: text({ mode: "json" }).$type<string[]>().notNull().default([]),
    connection_timeout_seconds: integer().notNull().default(120),
    troubleshooting_url: text().notNull().default(""),
    motd_file: text().notNull().default(""),
    /** Development containers of the template, which its daemon starts; `id` is made with the row. */
    devcontainers: text({ mode: "json" }).$type<DeclaredDevcontainer[]>().notNull().default([]),
    display_order: integer().notNull().default(0),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
    // What the daemon reports.
    version: text().notNull().default(""),
    api_version: text().notNull().default(""),
    expanded_directory: text().notNull().default(""),
    subsystems: text({ mode: "json" }).$type<string[]>().notNull().default([]),
    lifecycle_state: text().notNull().default("created"),
    lifecycle_changed_at: integer(),
    started_at: integer(),
    ready_at: integer(),
    // Connection facts; the status is derived from them when it is read (facts/platform 2.3).
    first_connected_at: integer(),
    last_connected_at: integer(),
    disconnected_at: integer(),
    /** How far the relays are, as it was with the last sign of life. */
    latency: text({ mode: "json" }).$type<Latency>().notNull().default({}),
    /** The space of its home and its memory, as it last reported them. */
    resources: text({ mode: "json" }).$type<AgentResources>(),
    /** Bytes of log output stored over the agent's life, and whether a batch was refused for the limit. */
    logs_length: integer().notNull().default(0),
    logs_overflowed: integer({ mode: "boolean" }).notNull().default(false),
  },
  (table) => [
    index("agents_resource").on(table.resource_id),
    index("agents_build").on(table.build_id),
    index("agents_instance").on(table.instance_id).where(sql`${table.instance_id} <> ''`),
  ],
);

export const agent_apps = agentTable(
  "agent_apps",
  {
    id: text().primaryKey(),
    agent_id: text().notNull(),
    slug: text().notNull(),
    display_name: text().notNull().default(""),
    command: text().notNull().default(""),
    url: text().notNull().default(""),
    external: integer({ mode: "boolean" }).notNull().default(false),
    subdomain: integer({ mode: "boolean" }).notNull().default(false),
    hidden: integer({ mode: "boolean" }).notNull().default(false),
    group: text().notNull().default(""),
    icon: text().notNull().default(""),
    tooltip: text().notNull().default(""),
    open_in: text().notNull().default("slim-window"),
    sharing_level: text().notNull().default("owner"),
    health: text().notNull().default("disabled"),
    healthcheck_url: text().notNull().default(""),
    healthcheck_interval: integer().notNull().default(0),
    healthcheck_threshold: integer().notNull().default(0),
    display_order: integer().notNull().default(0),
  },
  (table) => [uniqueIndex("agent_apps_slug").on(table.agent_id, table.slug)],
);

export const agent_scripts = agentTable(
  "agent_scripts",
  {
    id: text().primaryKey(),
    agent_id: text().notNull(),
    log_source_id: text().notNull(),
    log_path: text().notNull().default(""),
    display_name: text().notNull(),
    script: text().notNull(),
    cron: text().notNull().default(""),
    run_on_start: integer({ mode: "boolean" }).notNull().default(false),
    run_on_stop: integer({ mode: "boolean" }).notNull().default(false),
    start_blocks_login: integer({ mode: "boolean" }).notNull().default(false),
    /** It installs the owner's dotfiles: the other start scripts wait for it, and its failure is none of the start. */
    is_dotfiles: integer({ mode: "boolean" }).notNull().default(false),
    /** Seconds; 0 = no limit. */
    timeout_seconds: integer().notNull().default(0),
    display_order: integer().notNull().default(0),
    /** ok | exit_failure | timed_out | pipes_left_open; null until it has run. */
    status: text(),
    exit_code: integer(),
  },
  (table) => [index("agent_scripts_agent").on(table.agent_id)],
);

export const agent_script_timings = sqliteTable(
  "agent_script_timings",
  {
    script_id: text().notNull(),
    agent_id: text().notNull(),
    started_at: integer().notNull(),
    ended_at: integer().notNull(),
    exit_code: integer().notNull(),
    /** start | stop | cron */
    stage: text().notNull(),
    status: text().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.script_id, table.started_at] }),
    index("agent_script_timings_agent").on(table.agent_id),
  ],
);

export const agent_metadata = agentTable(
  "agent_metadata",
  {
    agent_id: text().notNull(),
    key: text().notNull(),
    display_name: text().notNull(),
    script: text().notNull(),
    /** Seconds. */
    interval: integer().notNull(),
    /** Seconds. */
    timeout: integer().notNull(),
    display_order: integer().notNull().default(0),
    value: text().notNull().default(""),
    error: text().notNull().default(""),
    collected_at: integer(),
  },
  (table) => [primaryKey({ columns: [table.agent_id, table.key] })],
);

export const agent_log_sources = agentTable(
  "agent_log_sources",
  {
    /** Integer key, used by the log lines. */
    key: integer().primaryKey(),
    agent_id: text().notNull(),
    /** Chosen by the agent; unique within it. */
    id: text().notNull(),
    display_name: text().notNull(),
    icon: text().notNull(),
    created_at: integer().notNull(),
    /** The id the newest batch came with, when it had one: the same batch sent again is not stored again. */
    last_batch: text(),
  },
  (table) => [uniqueIndex("agent_log_sources_id").on(table.agent_id, table.id)],
);

/** The hot table: integers only, one row a line (PERFORMANCE section 2b). */
export const agent_logs = linesTable(
  "agent_logs",
  {
    id: integer().primaryKey(),
    /** agents.key */
    agent: integer().notNull(),
    /** agent_log_sources.key */
    source: integer().notNull(),
    created_at: integer().notNull(),
    /** 0 trace, 1 debug, 2 info, 3 warn, 4 error */
    level: integer().notNull(),
    output: text().notNull(),
  },
  (table) => [index("agent_logs_agent").on(table.agent, table.id)],
);

/** The newest statistics an agent sent, one row an agent; buckets for insights come with their own table. */
export const agent_stats = quietTable("agent_stats", {
  agent_id: text().primaryKey(),
  collected_at: integer().notNull(),
  connection_count: integer().notNull(),
  connection_median_latency_ms: integer().notNull(),
  rx_bytes: integer().notNull(),
  tx_bytes: integer().notNull(),
  session_counts: text({ mode: "json" }).$type<Record<string, number>>().notNull(),
});
