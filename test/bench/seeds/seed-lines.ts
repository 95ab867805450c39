// A large database of agents' log lines, written directly to the file while no server is running. For the backup row.
import { Database } from "bun:sqlite";
import { closeSync, fsyncSync, openSync } from "node:fs";
import { join } from "node:path";
import { openLocalStore } from "#db/engine/local.ts";

const LINE_BYTES = 400;
/** The minimum size of such a line in the file, so that no more IDs are needed than were reserved. */
const ROW_BYTES = LINE_BYTES;
const LINES_PER_STATEMENT = 50_000;

/** Adds lines to an agent until the database has `bytes` bytes. Returns the number of lines. Reserves their IDs as the server would. */
export const seedLines = async (dataDir: string, agentId: string, bytes: number): Promise<number> => {
  const fatal = (error: Error): void => {
    throw error;
  };
  const maxLines = Math.ceil(bytes / ROW_BYTES) + LINES_PER_STATEMENT;
  const store = openLocalStore({ directory: dataDir, cacheMb: 64, now: Date.now(), fatal });
  const first = await store.reserve("agent_logs", maxLines);
  await store.close();
  using db = new Database(join(dataDir, "slipway.db"), { readwrite: true, create: false });
  const { agent } = db.query("select key as agent from agents where id = ?").get(agentId) as { agent: number };
  const sources = db.query("select key as source from agent_log_sources where agent_id = ?");
  const { source } = sources.get(agentId) as { source: number };
  // A crash here only loses a temporary file.
  db.run("pragma journal_mode=delete");
  db.run("pragma synchronous=off");
  const insert = db.prepare(
    `with recursive n(i) as (values (?) union all select i + 1 from n limit ${LINES_PER_STATEMENT})
     insert into agent_logs (id, agent, source, created_at, level, output)
     select i, ?, ?, ? + i, 2, printf('Step %08x: ', i) || ? from n`,
  );
  const filler = "RUN apt-get install -y build-essential libssl-dev pkg-config # ".repeat(7).slice(0, LINE_BYTES - 15);
  const now = Date.now();
  const size = db.query("select page_count * page_size as bytes from pragma_page_count, pragma_page_size");
  let lines = 0;
  while ((size.get() as { bytes: number }).bytes < bytes) {
    insert.run(first + lines, agent, source, now, filler);
    lines += LINES_PER_STATEMENT;
  }
  db.run("pragma journal_mode=wal");
  // Without this, the system would write the file later, during the measurement.
  const file = openSync(join(dataDir, "slipway.db"), "r+");
  fsyncSync(file);
  closeSync(file);
  return lines;
};
