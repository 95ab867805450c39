// Log sources of agents. Log lines refer to them by their integer key.
import { asc, sql } from "drizzle-orm";
import { build, eqParam, insertInto, query, statement } from "../engine/sql.ts";
import { agent_log_sources } from "../schema/agents.ts";

export type LogSourceRow = typeof agent_log_sources.$inferSelect;

/** The sources of one agent, oldest first. */
export const listLogSources = query(
  build.select().from(agent_log_sources).where(eqParam(agent_log_sources.agent_id)).orderBy(asc(agent_log_sources.key)),
);

/** The sources of several agents; `agent_ids` is a JSON array. */
export const listLogSourcesByAgents = query(
  build
    .select()
    .from(agent_log_sources)
    .where(sql`${agent_log_sources.agent_id} in (select value from json_each(${sql.placeholder("agent_ids")}))`)
    .orderBy(asc(agent_log_sources.key)),
);

/** `key` comes from the sequence `log_sources`. */
export const insertLogSource = insertInto(agent_log_sources);

/** Updates a source's display name and icon. */
export const updateLogSource = statement<{ key: number; display_name: string; icon: string }>(
  build
    .update(agent_log_sources)
    .set({ display_name: sql`${sql.placeholder("display_name")}`, icon: sql`${sql.placeholder("icon")}` })
    .where(eqParam(agent_log_sources.key)),
  { expect: 1 },
);

/** Stores the ID of a source's newest batch, together with its lines. */
export const noteBatch = statement<{ key: number; batch_id: string }>(
  build
    .update(agent_log_sources)
    .set({ last_batch: sql`${sql.placeholder("batch_id")}` })
    .where(eqParam(agent_log_sources.key)),
  { expect: 1 },
);
