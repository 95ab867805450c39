// Moves pages from the write-ahead log into the database file on a connection of its own, so that the writer never pays for it
// (PERFORMANCE section 2f). Told of commits by message; does nothing while the server is idle.
import { Database } from "bun:sqlite";

declare const self: Worker;

const INTERVAL_MS = 20;
let db: Database | undefined;
let due = false;

const checkpoint = (): void => {
  due = false;
  try {
    const row = db?.query("pragma wal_checkpoint(passive)").get() as { log: number; checkpointed: number } | undefined;
    self.postMessage({ log: row?.log ?? 0, checkpointed: row?.checkpointed ?? 0 });
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    self.postMessage({ error: message, code: code ?? "" });
  }
};

self.onmessage = ({ data }: MessageEvent<{ open?: string; committed?: true; close?: true }>) => {
  if (data.open) {
    db = new Database(data.open, { readwrite: true, create: false });
    db.run("pragma busy_timeout=1000");
    db.run("pragma synchronous=full");
  } else if (data.close) {
    db?.close();
    self.postMessage({ closed: true });
  } else if (!due) {
    due = true;
    setTimeout(checkpoint, INTERVAL_MS);
  }
};
