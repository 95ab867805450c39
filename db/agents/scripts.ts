// Scripts of agents and their run times. Inserted by the build; the agent reports results.
import { and, asc, lt, sql } from "drizzle-orm";
import { build, eqParam, insertInto, query, type Statement, statement, updateBy } from "../engine/sql.ts";
import { agent_script_timings, agent_scripts } from "../schema/agents.ts";

export type AgentScriptRow = typeof agent_scripts.$inferSelect;
export type AgentScriptTimingRow = typeof agent_script_timings.$inferSelect;

const order = [asc(agent_scripts.display_order), asc(agent_scripts.display_name), asc(agent_scripts.id)] as const;

/** The scripts of one agent in the template's order. */
export const listAgentScripts = query(
  build
    .select()
    .from(agent_scripts)
    .where(eqParam(agent_scripts.agent_id))
    .orderBy(...order),
);

/** The scripts of several agents; `agent_ids` is a JSON array. */
export const listScriptsByAgents = query(
  build
    .select()
    .from(agent_scripts)
    .where(sql`${agent_scripts.agent_id} in (select value from json_each(${sql.placeholder("agent_ids")}))`)
    .orderBy(...order),
);

export const insertAgentScript = insertInto(agent_scripts);
export const updateAgentScript = updateBy(agent_scripts, agent_scripts.id);

const isSameStage = sql`(${sql.placeholder("stage")} = '' or stage = ${sql.placeholder("stage")})`;

/**
 * The newest run of each script of several agents, oldest first. Parameters: {agent_ids, a JSON array; stage: `start`, `stop`, `cron`, or
 * empty for any stage}.
 */
export const listScriptTimingsByAgents = query(
  build
    .select()
    .from(agent_script_timings)
    .where(
      sql`${agent_script_timings.agent_id} in (select value from json_each(${sql.placeholder("agent_ids")}))
        and ${agent_script_timings.started_at} = (select max(n.started_at) from ${agent_script_timings} n
          where n.script_id = ${agent_script_timings}.script_id and ${isSameStage})`,
    )
    .orderBy(asc(agent_script_timings.started_at), asc(agent_script_timings.script_id))
    .limit(10_000),
);

const param = sql.placeholder;
const deleteRunsBefore = statement<{ script_id: string; stage: string; started_at: number }>(
  build
    .delete(agent_script_timings)
    .where(
      and(
        eqParam(agent_script_timings.script_id),
        eqParam(agent_script_timings.stage),
        lt(agent_script_timings.started_at, param("started_at")),
      ),
    ),
);

/** Stores this run and deletes earlier runs of the same stage, which nothing reads. Cron scripts would have many of them. */
export const replaceScriptTiming = (run: AgentScriptTimingRow): Statement[] => [
  deleteRunsBefore({ script_id: run.script_id, stage: run.stage, started_at: run.started_at }),
  saveScriptTiming(run),
];

/** Stores a run. A run that is reported again after a lost answer is stored once. */
const saveScriptTiming = statement<AgentScriptTimingRow>(
  build
    .insert(agent_script_timings)
    .values({
      script_id: param("script_id"),
      agent_id: param("agent_id"),
      started_at: param("started_at"),
      ended_at: param("ended_at"),
      exit_code: param("exit_code"),
      stage: param("stage"),
      status: param("status"),
    })
    .onConflictDoNothing(),
);
