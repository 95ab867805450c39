// Metadata of agents: the items that the template defines, and their newest results.
import { asc, sql } from "drizzle-orm";
import { build, eqParam, insertInto, query, statement } from "../engine/sql.ts";
import { agent_metadata } from "../schema/agents.ts";

export type AgentMetadataRow = typeof agent_metadata.$inferSelect;

const order = [asc(agent_metadata.display_order), asc(agent_metadata.key)] as const;

/** The metadata of one agent in display order. */
export const listAgentMetadata = query(
  build
    .select()
    .from(agent_metadata)
    .where(eqParam(agent_metadata.agent_id))
    .orderBy(...order),
);

/** The metadata of several agents; `agent_ids` is a JSON array. */
export const listMetadataByAgents = query(
  build
    .select()
    .from(agent_metadata)
    .where(sql`${agent_metadata.agent_id} in (select value from json_each(${sql.placeholder("agent_ids")}))`)
    .orderBy(...order),
);

export const insertAgentMetadata = insertInto(agent_metadata);

const param = sql.placeholder;
/** Stores the newest result of one key. */
export const updateAgentMetadata = statement<{
  agent_id: string;
  key: string;
  value: string;
  error: string;
  collected_at: number;
}>(
  build
    .update(agent_metadata)
    .set({ value: sql`${param("value")}`, error: sql`${param("error")}`, collected_at: sql`${param("collected_at")}` })
    .where(sql`${agent_metadata.agent_id} = ${param("agent_id")} and ${agent_metadata.key} = ${param("key")}`),
  { expect: 1 },
);
