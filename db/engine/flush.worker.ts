// Flushes the write-ahead log to disk on request, on a separate thread (log-flush.ts).
import { fdatasyncSync } from "node:fs";

declare const self: Worker;

/** First the log's file descriptor in this process, then an order per flush. */
export type FlushOrder = { readonly log: number } | "flush";
export type FlushReport = { readonly done: "ready" | "flushed" } | { readonly error: string };

let log = -1;
const report = (one: FlushReport): void => self.postMessage(one);

self.onmessage = ({ data }: MessageEvent<FlushOrder>) => {
  if (data !== "flush") {
    log = data.log;
    report({ done: "ready" });
    return;
  }
  try {
    fdatasyncSync(log);
    report({ done: "flushed" });
  } catch (error) {
    report({ error: (error as Error).message });
  }
};
