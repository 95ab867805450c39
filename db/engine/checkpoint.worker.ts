// Moves pages from the write-ahead log into the database file on a connection of its own, so that the writer never pays for it
// (PERFORMANCE section 2f). Told of commits by message; does nothing while the server is idle.
import { Database } from "bun:sqlite";
import { armFailpoint, failpoint } from "#base/failpoint.ts";

declare const self: Worker;

const INTERVAL_MS = 20;
let db: Database | undefined;
let due: ReturnType<typeof setTimeout> | undefined;

const checkpoint = (): void => {
  due = undefined;
  try {
    const row = db?.query("pragma wal_checkpoint(passive)").get() as { log: number; checkpointed: number } | undefined;
    failpoint("in_checkpoint");
    self.postMessage({ log: row?.log ?? 0, checkpointed: row?.checkpointed ?? 0 });
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    self.postMessage({ error: message, code: code ?? "" });
  }
};

type Order = { open?: string; failpoint?: string; committed?: true; close?: true };

self.onmessage = ({ data }: MessageEvent<Order>) => {
  if (data.open) {
    if (data.failpoint) armFailpoint(data.failpoint);
    db = new Database(data.open, { readwrite: true, create: false });
    db.run("pragma busy_timeout=1000");
    db.run("pragma synchronous=full");
  } else if (data.close) {
    clearTimeout(due);
    db?.close();
    self.postMessage({ closed: true });
  } else {
    due ??= setTimeout(checkpoint, INTERVAL_MS);
  }
};
