// Worker of floor.ts: checkpoints the WAL on a separate connection, so that no commit pays for it, and reports the WAL's length in pages.
import { Database } from "bun:sqlite";

declare const self: Worker;

self.onmessage = (event: MessageEvent<string>) => {
  const db = new Database(event.data);
  db.run("pragma busy_timeout=1000");
  const checkpoint = db.prepare<{ log: number }, []>("pragma wal_checkpoint(passive)");
  setInterval(() => {
    const row = checkpoint.get();
    if (row) self.postMessage(row.log);
  }, 20);
};
