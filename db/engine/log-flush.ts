// Flushes the write-ahead log while the event loop continues, so that a slow disk delays only callers that wait for a write. Uses a
// dedicated Worker, because the thread pool also resolves DNS names and hashes passwords, which can take seconds.
import { closeSync, fdatasyncSync, openSync } from "node:fs";
import type { FlushOrder, FlushReport } from "./flush.worker.ts";
import { SpareWorkers } from "./spare-workers.ts";

/** Number of flushes after which the Worker starts, so that it does not delay the startup. */
const WORKER_START_FLUSHES = 8;

const workers = new SpareWorkers(() => new Worker(new URL("./flush.worker.ts", import.meta.url).href));

export type LogFlushOptions = {
  /** Called when the Worker died: the process must exit. */
  fatal(error: Error): void;
};

export class LogFlush {
  readonly #log: number;
  readonly #options: LogFlushOptions;
  #worker: Worker | undefined;
  #isReady = false;
  #flushes = 0;
  #waiting: PromiseWithResolvers<void> | undefined;

  /** `file` is the database. Its log must exist. */
  constructor(file: string, options: LogFlushOptions) {
    this.#log = openSync(`${file}-wal`, "r");
    this.#options = options;
  }

  /**
   * Resolves when everything committed before the call is on disk. Rejects with SQLite's code of a failed flush. Allows one call at a
   * time. The first flushes are synchronous, until the Worker has started.
   */
  async flush(): Promise<void> {
    this.#flushes += 1;
    if (this.#flushes === WORKER_START_FLUSHES) this.#worker = this.#start();
    if (!this.#worker || !this.#isReady) {
      this.#flushSync();
      return;
    }
    this.#waiting = Promise.withResolvers();
    // Waiting for the disk keeps the process alive.
    this.#worker.ref();
    this.#worker.postMessage("flush" satisfies FlushOrder);
    await this.#waiting.promise;
  }

  /** Must be called after the last flush has ended. */
  close(): void {
    if (this.#worker && this.#isReady && !this.#waiting) workers.release(this.#worker);
    else this.#worker?.terminate();
    closeSync(this.#log);
  }

  #flushSync(): void {
    try {
      fdatasyncSync(this.#log);
    } catch (error) {
      throw toFlushError((error as Error).message);
    }
  }

  #start(): Worker {
    const worker = workers.acquire();
    worker.onmessage = ({ data }: MessageEvent<FlushReport>) => this.#onReport(data);
    worker.onerror = ({ message }) => {
      const error = toFlushError(`the worker that flushes has died: ${message}`);
      if (this.#waiting) this.#end(error);
      else this.#options.fatal(error);
    };
    worker.postMessage({ log: this.#log } satisfies FlushOrder);
    return worker;
  }

  #onReport(report: FlushReport): void {
    if ("error" in report) this.#end(toFlushError(report.error));
    else if (report.done === "ready") this.#isReady = true;
    // Continues in a separate turn of the event loop: the caller may run the loop itself, as tests do, and an unfinished message of a
    // Worker blocks the next one.
    else setImmediate(() => this.#end());
  }

  #end(error?: Error): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    this.#worker?.unref();
    if (error) waiting?.reject(error);
    else waiting?.resolve();
  }
}

/** Returns an error with the message and code of SQLite, as for the flushes that SQLite does itself. */
const toFlushError = (cause: string): Error =>
  Object.assign(new Error("disk I/O error", { cause }), { code: "SQLITE_IOERR_FSYNC" });
