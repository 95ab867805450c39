// Statistics of all workspaces: how many are in each state, and the reports of existing agents.
import { and, count, eq, gte, sql } from "drizzle-orm";
import { build, query, type RowOfQuery } from "../engine/sql.ts";
import { agent_stats, agents } from "../schema/agents.ts";
import { workspaces } from "../schema/workspaces.ts";

export const listStatusCounts = query(
  build
    .select({ status: workspaces.status, count: count().as("count") })
    .from(workspaces)
    .where(eq(workspaces.deleted, false))
    .groupBy(workspaces.status),
);

/** The last reports of agents of latest builds: {from}, milliseconds since 1970. */
export const listAgentFigures = query(
  build
    .select({
      connection_count: agent_stats.connection_count,
      connection_median_latency_ms: agent_stats.connection_median_latency_ms,
      rx_bytes: agent_stats.rx_bytes,
      tx_bytes: agent_stats.tx_bytes,
      session_counts: agent_stats.session_counts,
    })
    .from(agent_stats)
    .innerJoin(agents, eq(agents.id, agent_stats.agent_id))
    .innerJoin(workspaces, eq(workspaces.latest_build_id, agents.build_id))
    .where(and(gte(agent_stats.collected_at, sql.placeholder("from")), eq(workspaces.deleted, false))),
);
export type AgentFigures = RowOfQuery<typeof listAgentFigures>;
