// Checks stored data while its server is dead or idle (RELIABILITY section 4, points 7 and 9): a copy of SQLite's files, so that the next
// server finds the files as the dead one has left them, or the database on PostgreSQL once the dead server's connections have ended.
import { copyFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { usesPostgres } from "#test/support/postgres-server.ts";
import { tempDirectory } from "#test/support/server.ts";
import { openStoredData, type StoredData } from "#test/support/stored.ts";
import { until } from "#test/support/until.ts";

const CHECKS: readonly { what: string; sql: string }[] = [
  {
    what: "logs_length is not the bytes of the stored lines",
    sql: `select name, logs_length, stored from (select a.name, a.logs_length, coalesce((select
            sum(case when l.output = '' then 1 else octet_length(l.output) end) from agent_logs l where l.agent = a.key), 0) as stored
          from agents a) as found where logs_length <> stored`,
  },
  { what: "lines without an agent", sql: "select id from agent_logs where agent not in (select key from agents)" },
  {
    what: "lines without a source",
    sql: "select id from agent_logs where source not in (select key from agent_log_sources)",
  },
  {
    what: "a source without an agent",
    sql: "select key from agent_log_sources where agent_id not in (select id from agents)",
  },
  { what: "a build without its job", sql: "select id from workspace_builds where job_id not in (select id from jobs)" },
  {
    what: "a build without its workspace",
    sql: "select id from workspace_builds where workspace_id not in (select id from workspaces)",
  },
  {
    what: "a workspace without its latest build",
    sql: "select id from workspaces where latest_build_id not in (select id from workspace_builds)",
  },
  {
    what: "build numbers with gaps",
    sql: "select workspace_id from workspace_builds group by workspace_id having min(build_number) <> 1 or max(build_number) <> count(*)",
  },
  {
    what: "a workspace with two active builds",
    sql: `select b.workspace_id from workspace_builds b join jobs j on j.id = b.job_id where j.completed_at is null
          group by b.workspace_id having count(*) > 1`,
  },
];

/** Returns problems with the database of this data directory. The server must not be writing. */
export const findDatabaseProblems = (directory: string): Promise<string[]> => withStored(directory, findProblems);

/** Returns the result of `inspect` on the stored data of this data directory. The server must not be writing. */
export const withStored = async <T>(directory: string, inspect: (stored: StoredData) => Promise<T>): Promise<T> => {
  using copy = tempDirectory();
  if (!usesPostgres) {
    for (const name of ["slipway.db", "slipway.db-wal"]) {
      if (existsSync(join(directory, name))) copyFileSync(join(directory, name), join(copy.path, name));
    }
  }
  await using stored = await openStoredData(usesPostgres ? directory : copy.path);
  if (usesPostgres) await until(() => isUnused(stored), { what: "the connections of the dead server to end" });
  return await inspect(stored);
};

/** Returns true once no other client is connected. The database still executes what a killed server has sent, including its COMMIT. */
const isUnused = async (stored: StoredData): Promise<boolean> => {
  const otherConnections = `select 1 from pg_stat_activity
    where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()`;
  return (await stored.rows(otherConnections)).length === 0;
};

const findProblems = async (stored: StoredData): Promise<string[]> => {
  const problems: string[] = [];
  // PostgreSQL is not killed here, and enforces foreign keys.
  if (!usesPostgres) {
    const integrity = String((await stored.rows("pragma integrity_check"))[0]?.[0]);
    if (integrity !== "ok") problems.push(`integrity: ${integrity}`);
    if ((await stored.rows("pragma foreign_key_check")).length > 0) problems.push("foreign keys are broken");
  }
  for (const { what, sql } of CHECKS) {
    const rows = await stored.rows(sql);
    if (rows.length > 0) problems.push(`${what}: ${JSON.stringify(rows.slice(0, 3))}`);
  }
  return problems;
};
