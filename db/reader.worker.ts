// Runs lists, searches and reports on a read-only connection of its own, so that none of them stops the event loop
// (PERFORMANCE section 2h). Bounded in rows; one query at a time.
import { Database } from "bun:sqlite";

declare const self: Worker;

let db: Database | undefined;

self.onmessage = ({
  data,
}: MessageEvent<{ open?: string; id?: number; sql?: string; params?: unknown[]; limit?: number }>) => {
  if (data.open) {
    db = new Database(data.open, { readonly: true });
    db.run("pragma busy_timeout=1000");
    db.run("pragma query_only=on");
    return;
  }
  const { id, sql = "", params = [], limit = 0 } = data;
  try {
    const rows = db?.query(sql).values(...(params as never[])) ?? [];
    if (rows.length > limit) self.postMessage({ id, error: `more than ${limit} rows` });
    else self.postMessage({ id, rows });
  } catch (error) {
    self.postMessage({ id, error: (error as Error).message });
  }
};
