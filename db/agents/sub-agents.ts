// Nested agents, such as those of devcontainers: rows of agents that have a parent. The parent's actor writes them; the workspace's actor
// also deletes them.
import { asc, eq, sql } from "drizzle-orm";
import { build, eqParam, query, type Statement, statement } from "../engine/sql.ts";
import {
  agent_apps,
  agent_log_sources,
  agent_logs,
  agent_metadata,
  agent_script_timings,
  agent_scripts,
  agent_stats,
  agents,
} from "../schema/agents.ts";
import { app_statuses } from "../schema/app-statuses.ts";

/** The children of an agent, by name. */
export const listSubAgents = query(
  build
    .select({ id: agents.id, key: agents.key, name: agents.name })
    .from(agents)
    // Filters by the build, which has an index. A child belongs to its parent's build.
    .where(
      sql`${agents.build_id} = (select "p"."build_id" from ${agents} "p" where "p"."id" = ${sql.placeholder("parent_id")}) and ${agents.parent_id} = ${sql.placeholder("parent_id")}`,
    )
    .orderBy(asc(agents.name)),
);

type AgentParams = { agent_id: string };
const deletions = [
  app_statuses,
  agent_apps,
  agent_log_sources,
  agent_metadata,
  agent_scripts,
  agent_script_timings,
  agent_stats,
].map((table) => statement<AgentParams>(build.delete(table).where(eqParam(table.agent_id))));
const deleteLogs = statement<{ key: number }>(
  build.delete(agent_logs).where(eq(agent_logs.agent, sql.placeholder("key"))),
);
const deleteAgent = statement<{ id: string }>(build.delete(agents).where(eqParam(agents.id)));

/** Deletes an agent and all its rows; `key` is its integer key. */
export const deleteSubAgent = ({ id, key }: { id: string; key: number }): Statement[] => [
  ...deletions.map((one) => one({ agent_id: id })),
  deleteLogs({ key }),
  deleteAgent({ id }),
];
