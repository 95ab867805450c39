// Log lines of agents, the table with the most writes. Rows are bound by hand, because binding takes most of a batch's time.
// Reads always use a cursor.
import { and, asc, gt, lt, sql } from "drizzle-orm";
import { build, eqParam, query, type Statement, type Value } from "../engine/sql.ts";
import { agent_logs } from "../schema/agents.ts";
import { listTouches } from "../schema/cache-dependencies.ts";

/** A stored line; `level` counts from 0 (trace) to 4 (error), `created_at` is in milliseconds. */
export type AgentLogRow = { id: number; created_at: number; level: number; output: string; source: number };

const insertSql = (lines: number): string =>
  `insert into agent_logs (id, agent, source, created_at, level, output) values ${Array(lines).fill("(?, ?, ?, ?, ?, ?)").join(", ")}`;

/** Lines per execution of the statement. This is a third faster than single lines, and larger values are not faster (test/bench). */
const CHUNK_ROWS = 25;
const INSERT_CHUNK = insertSql(CHUNK_ROWS);
const INSERT_ONE = insertSql(1);
const LINES = listTouches(agent_logs);

/** Inserts the lines of one source; IDs are consecutive from `first`, in the given order. */
export const insertAgentLogs = (
  first: number,
  agent: number,
  source: number,
  lines: readonly { created_at: number; level: number; output: string }[],
): Statement[] => {
  const chunks: Value[][] = [];
  const remainder: Value[][] = [];
  const chunkedCount = lines.length - (lines.length % CHUNK_ROWS);
  let values: Value[] = [];
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] as (typeof lines)[number];
    if (i >= chunkedCount) remainder.push([first + i, agent, source, line.created_at, line.level, line.output]);
    else {
      if (i % CHUNK_ROWS === 0) {
        values = [];
        chunks.push(values);
      }
      values.push(first + i, agent, source, line.created_at, line.level, line.output);
    }
  }
  const writes: Statement[] = [];
  if (chunks.length > 0) writes.push({ touches: LINES, sql: INSERT_CHUNK, rows: chunks });
  if (remainder.length > 0) writes.push({ touches: LINES, sql: INSERT_ONE, rows: remainder });
  return writes;
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
        eqParam(agent_logs.agent),
        gt(agent_logs.id, sql.placeholder("after")),
        lt(agent_logs.id, sql.placeholder("before")),
      ),
    )
    .orderBy(asc(agent_logs.id))
    .limit(sql.placeholder("limit")),
);
