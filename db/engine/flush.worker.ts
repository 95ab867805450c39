// Flushes the write-ahead log to the disk whenever it is asked to, on a thread of its own (log-flush.ts).
import { fdatasyncSync } from "node:fs";

declare const self: Worker;

/** The log as the process has opened it, and then an order for each flush. */
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
