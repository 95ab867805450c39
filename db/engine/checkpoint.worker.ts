// Moves pages from the write-ahead log into the database file on a separate connection, so that the writer never pays for it. Notified of
// commits by message; does nothing while the server is idle.
import { Database } from "bun:sqlite";
import { armFailpoint, failpoint } from "#base/failpoint.ts";

declare const self: Worker;

const INTERVAL_MS = 20;
/** Pages of the log (4 KiB each) below which a checkpoint can wait: restarting the log costs the writer a synchronous flush. */
const MIN_PAGES = 1_000;
let db: Database | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;

type Progress = { log: number; checkpointed: number };
const runCheckpoint = (mode: "noop" | "passive"): Progress =>
  (db?.query(`pragma wal_checkpoint(${mode})`).get() as Progress | undefined) ?? { log: 0, checkpointed: 0 };

const checkpoint = (): void => {
  timer = undefined;
  try {
    const before = runCheckpoint("noop");
    const { log, checkpointed } = before.log - before.checkpointed < MIN_PAGES ? before : runCheckpoint("passive");
    failpoint("in_checkpoint");
    self.postMessage({ log, checkpointed });
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    self.postMessage({ error: message, code: code ?? "" });
  }
};

type WorkerMessage = { open?: string; failpoint?: string; committed?: true; close?: true };

self.onmessage = ({ data }: MessageEvent<WorkerMessage>) => {
  if (data.open) {
    if (data.failpoint) armFailpoint(data.failpoint);
    db = new Database(data.open, { readwrite: true, create: false });
    db.run("pragma busy_timeout=1000");
    db.run("pragma synchronous=full");
  } else if (data.close) {
    clearTimeout(timer);
    db?.close();
    self.postMessage({ closed: true });
  } else {
    timer ??= setTimeout(checkpoint, INTERVAL_MS);
  }
};
