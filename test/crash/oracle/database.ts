// Looks into a copy of the database while its server is dead or idle (RELIABILITY section 4, points 7 and 9).
import { Database } from "bun:sqlite";
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const CHECKS: readonly { what: string; sql: string }[] = [
  {
    what: "logs_length is not the bytes of the stored lines",
    sql: `select a.name, a.logs_length, sum(max(1, length(cast(l.output as blob)))) as stored from agents a
          left join agent_logs l on l.agent = a.key group by a.key having a.logs_length <> coalesce(stored, 0)`,
  },
  { what: "lines of no agent", sql: "select id from agent_logs where agent not in (select key from agents)" },
  {
    what: "lines of no source",
    sql: "select id from agent_logs where source not in (select key from agent_log_sources)",
  },
  {
    what: "a source of no agent",
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

/** What is wrong with the database in this data directory, in words. Its files are copied first; the server must not be writing. */
export const databaseProblems = (directory: string): string[] => lookIntoCopy(directory, problemsOf);

/** What `look` finds in a copy of the database in this data directory. The server must not be writing. */
export const lookIntoCopy = <T>(directory: string, look: (db: Database) => T): T => {
  const copy = mkdtempSync(join(tmpdir(), "slipway-copy-"));
  try {
    for (const name of ["slipway.db", "slipway.db-wal"]) {
      if (existsSync(join(directory, name))) copyFileSync(join(directory, name), join(copy, name));
    }
    const db = new Database(join(copy, "slipway.db"));
    try {
      return look(db);
    } finally {
      db.close();
    }
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
};

const problemsOf = (db: Database): string[] => {
  const wrong: string[] = [];
  const integrity = String(db.query("pragma integrity_check").values()[0]?.[0]);
  if (integrity !== "ok") wrong.push(`integrity: ${integrity}`);
  if (db.query("pragma foreign_key_check").values().length > 0) wrong.push("foreign keys are broken");
  for (const { what, sql } of CHECKS) {
    const rows = db.query(sql).values();
    if (rows.length > 0) wrong.push(`${what}: ${JSON.stringify(rows.slice(0, 3))}`);
  }
  return wrong;
};
