// Log lines of agents: the hot table. Rows are bound by hand, column by column, since this is where the time of a batch goes
// (PERFORMANCE section 2b); reading is always by cursor.
import { and, asc, eq, gt, lt, sql } from "drizzle-orm";
import { agent_logs } from "./schema/agents.ts";
import { build, query, type Statement, type Value } from "./sql.ts";

/** One line as it is stored; `level` counts from 0 (trace) to 4 (error), `created_at` is in milliseconds. */
export type AgentLogRow = { id: number; created_at: number; level: number; output: string; source: number };

const INSERT = "insert into agent_logs (id, agent, source, created_at, level, output) values (?, ?, ?, ?, ?, ?)";

/** The lines of one source; ids are consecutive from `first`, in the order given. */
export const insertAgentLogs = (
  first: number,
  agent: number,
  source: number,
  lines: readonly { created_at: number; level: number; output: string }[],
): Statement => {
  const rows: Value[][] = new Array(lines.length);
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] as (typeof lines)[number];
    rows[i] = [first + i, agent, source, line.created_at, line.level, line.output];
  }
  return { sql: INSERT, rows };
};

/** Lines of an agent with `after` < id < `before`, ascending, at most `limit`. */
export const listAgentLogs = query(
  build
    .select({
      id: agent_logs.id,
      created_at: agent_logs.created_at,
      level: agent_logs.level,
      output: agent_logs.output,
      source: agent_logs.source,
    })
    .from(agent_logs)
    .where(
      and(
        eq(agent_logs.agent, sql.placeholder("agent")),
        gt(agent_logs.id, sql.placeholder("after")),
        lt(agent_logs.id, sql.placeholder("before")),
      ),
    )
    .orderBy(asc(agent_logs.id))
    .limit(sql.placeholder("limit")),
);
