// Workspace agents and everything they report. Inserted by the build that creates them, then written only by the agent actor.
import { sql } from "drizzle-orm";
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { AgentResources } from "#schema/agents/resources.ts";
import { agentTable, linesTable, uncachedTable } from "./cache-dependencies.ts";
import { workspaces } from "./workspaces.ts";

export type DeclaredDevcontainer = { id: string; name: string; workspace_folder: string; config_path: string };

/** By region name; `preferred` is the agent's home region. */
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
    /** SHA-256 of the agent token, hex; null when another agent has taken the token over. */
    token_hash: text().unique(),
    /** How often the token was replaced by a new one, and when the newest was made; null: by the template's provisioner. */
    token_generation: integer().notNull().default(0),
    token_made_at: integer(),
    /** The newest process of Slipway's daemon, and when it followed another one while people other than the owner could enter. */
    daemon_id: text().notNull().default(""),
    daemon_replaced_at: integer(),
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
    /** The template's dev containers, which the agent's daemon starts; `id` is created with the row. */
    devcontainers: text({ mode: "json" }).$type<DeclaredDevcontainer[]>().notNull().default([]),
    display_order: integer().notNull().default(0),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
    // Reported by the daemon.
    version: text().notNull().default(""),
    api_version: text().notNull().default(""),
    expanded_directory: text().notNull().default(""),
    subsystems: text({ mode: "json" }).$type<string[]>().notNull().default([]),
    lifecycle_state: text().notNull().default("created"),
    lifecycle_changed_at: integer(),
    started_at: integer(),
    ready_at: integer(),
    // Times of connections. The status is derived from them when it is read (facts/platform 2.3).
    first_connected_at: integer(),
    last_connected_at: integer(),
    disconnected_at: integer(),
    /** Latency to the relays as of the last heartbeat. */
    latency: text({ mode: "json" }).$type<Latency>().notNull().default({}),
    /** The last reported disk and memory usage. */
    resources: text({ mode: "json" }).$type<AgentResources>(),
    /** Bytes of log output stored over the agent's lifetime, and whether a batch was rejected at the limit. */
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
    /** Installs the owner's dotfiles. The other start scripts wait for it, and its failure does not fail the start. */
    is_dotfiles: integer({ mode: "boolean" }).notNull().default(false),
    /** Seconds; 0: no limit. */
    timeout_seconds: integer().notNull().default(0),
    display_order: integer().notNull().default(0),
    /** ok | exit_failure | timed_out | pipes_left_open; null before the first run. */
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
    /** The ID of the newest batch, if it had one, so that a retry is not stored twice. */
    last_batch: text(),
  },
  (table) => [uniqueIndex("agent_log_sources_id").on(table.agent_id, table.id)],
);

/** The hot table: integers only, except the text; one row per line. */
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

/** The newest statistics of each agent, one row per agent. */
export const agent_stats = uncachedTable("agent_stats", {
  agent_id: text().primaryKey(),
  collected_at: integer().notNull(),
  connection_count: integer().notNull(),
  connection_median_latency_ms: integer().notNull(),
  rx_bytes: integer().notNull(),
  tx_bytes: integer().notNull(),
  session_counts: text({ mode: "json" }).$type<Record<string, number>>().notNull(),
});
