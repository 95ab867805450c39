// Workspace agents and their newest statistics. Inserted by the build that creates them, then written only by the agent actor.
import { and, asc, eq, isNull, ne, sql } from "drizzle-orm";
import {
  build,
  eqParam,
  findBy,
  insertInto,
  query,
  type RowOfQuery,
  type Statement,
  statement,
  updateBy,
} from "../engine/sql.ts";
import { agent_stats, agents } from "../schema/agents.ts";
import { users } from "../schema/users.ts";
import { workspaces } from "../schema/workspaces.ts";
import { isOfStartBefore, isSignedIn, mayBeRunning } from "./signed-in.ts";

/** The existing workspace with the oldest agent, of any build, that has this instance ID. Parameters: {instance_id}. */
const selectFirstWorkspace = sql`(select a.workspace_id from agents a join workspaces w on w.id = a.workspace_id
  where a.instance_id = ${sql.placeholder("instance_id")} and a.instance_id <> '' and a.parent_id is null and w.deleted = 0
  order by a.created_at, a.key limit 1)`;

/** The signed-in agents that run on this cloud instance, by name. Parameters: {instance_id}. */
export const listAgentsOfInstance = query(
  build
    .select({ agent_id: agents.id, name: agents.name })
    .from(agents)
    .innerJoin(workspaces, eq(workspaces.id, agents.workspace_id))
    .where(
      and(
        eqParam(agents.instance_id),
        // Required for SQLite to use the partial index.
        ne(agents.instance_id, sql`''`),
        isNull(agents.parent_id),
        sql`${agents.workspace_id} = ${selectFirstWorkspace}`,
        isSignedIn,
      ),
    )
    .orderBy(asc(agents.name), asc(agents.key))
    .limit(50),
);

export type AgentRow = typeof agents.$inferSelect;
export type AgentStatsRow = typeof agent_stats.$inferSelect;

export const findAgent = findBy(agents, agents.id);

/** The columns that the agent's actor needs for its decisions. The actor writes other columns without keeping them in memory. */
export type AgentFacts = RowOfQuery<typeof findAgentFacts>;

export const findAgentFacts = query(
  build
    .select({
      key: agents.key,
      id: agents.id,
      workspace_id: agents.workspace_id,
      token_hash: agents.token_hash,
      token_generation: agents.token_generation,
      daemon_id: agents.daemon_id,
      connection_timeout_seconds: agents.connection_timeout_seconds,
      created_at: agents.created_at,
      lifecycle_state: agents.lifecycle_state,
      lifecycle_changed_at: agents.lifecycle_changed_at,
      started_at: agents.started_at,
      ready_at: agents.ready_at,
      first_connected_at: agents.first_connected_at,
      last_connected_at: agents.last_connected_at,
      disconnected_at: agents.disconnected_at,
      resources: agents.resources,
      logs_length: agents.logs_length,
      logs_overflowed: agents.logs_overflowed,
      part: workspaces.part,
    })
    .from(agents)
    .innerJoin(workspaces, eq(workspaces.id, agents.workspace_id))
    .where(eqParam(agents.id)),
);

/** Columns that identify the agent. */
export const agentIdentity = {
  agent_id: agents.id,
  agent_key: agents.key,
  agent_name: agents.name,
  build_id: agents.build_id,
  token_generation: agents.token_generation,
};

/** The columns that decide who may access an agent, whether its build is the latest, and whether its token is valid. Parameters: {id}. */
export const findAgentAccessRow = query(
  build
    .select({
      ...agentIdentity,
      parent_id: agents.parent_id,
      workspace_id: workspaces.id,
      part: workspaces.part,
      workspace_name: workspaces.name,
      owner_id: workspaces.owner_id,
      owner_username: users.username,
      organization_id: workspaces.organization_id,
      user_acl: workspaces.user_acl,
      group_acl: workspaces.group_acl,
      latest_build_id: workspaces.latest_build_id,
      token_made_at: agents.token_made_at,
      daemon_replaced_at: agents.daemon_replaced_at,
      access_lost_at: workspaces.access_lost_at,
      signed_in: sql<number>`${isSignedIn}`,
      deleted: workspaces.deleted,
      dormant_at: workspaces.dormant_at,
    })
    .from(agents)
    .innerJoin(workspaces, eq(workspaces.id, agents.workspace_id))
    .innerJoin(users, eq(users.id, workspaces.owner_id))
    .where(eqParam(agents.id)),
);

/** The agents of several resources in display order; `resource_ids` is a JSON array. */
export const listAgentsOfResources = query(
  build
    .select()
    .from(agents)
    .where(sql`${agents.resource_id} in (select value from json_each(${sql.placeholder("resource_ids")}))`)
    .orderBy(asc(agents.display_order), asc(agents.name)),
);

/** The agents of one build in display order. */
export const listAgentsOfBuild = query(
  build.select().from(agents).where(eqParam(agents.build_id)).orderBy(asc(agents.display_order), asc(agents.name)),
);

/** The agents of the start build before this stop or delete build. Parameters: {build_id}. */
export const listAgentsEndedBy = query(
  build.select().from(agents).where(isOfStartBefore).orderBy(asc(agents.display_order), asc(agents.name)),
);

/** The agents of a workspace that may be running, which a stop or delete build must end. Parameters: {workspace_id}. */
export const listRunningAgents = query(
  build.select().from(agents).where(mayBeRunning).orderBy(asc(agents.display_order), asc(agents.name)),
);

/** `key` comes from the sequence `agents`. */
export const insertAgent = insertInto(agents);
export const updateAgent = updateBy(agents, agents.id);

/** Updates the number of bytes of an agent's stored log output, in the batch that adds lines. */
export const updateLogsLength = (id: string, logs_length: number): Statement => ({
  touches: ["agents"],
  sql: "update agents set logs_length = ? where id = ?",
  rows: [[logs_length, id]],
  expect: 1,
});

const param = sql.placeholder;
/** Replaces an agent's newest statistics. */
export const saveAgentStats = statement<AgentStatsRow>(
  build
    .insert(agent_stats)
    .values({
      agent_id: param("agent_id"),
      collected_at: param("collected_at"),
      connection_count: param("connection_count"),
      connection_median_latency_ms: param("connection_median_latency_ms"),
      rx_bytes: param("rx_bytes"),
      tx_bytes: param("tx_bytes"),
      session_counts: param("session_counts") as never,
    })
    .onConflictDoUpdate({
      target: agent_stats.agent_id,
      set: {
        collected_at: sql`excluded.collected_at`,
        connection_count: sql`excluded.connection_count`,
        connection_median_latency_ms: sql`excluded.connection_median_latency_ms`,
        rx_bytes: sql`excluded.rx_bytes`,
        tx_bytes: sql`excluded.tx_bytes`,
        session_counts: sql`excluded.session_counts`,
      },
    }),
);
