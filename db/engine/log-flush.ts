// Brings the write-ahead log to the disk while the loop continues: a slow disk delays who waits for their write, and not the whole server. On a
// Worker of its own, because the pool of threads also looks up names and digests passwords, which takes seconds.
import { closeSync, fdatasyncSync, openSync } from "node:fs";
import type { FlushOrder, FlushReport } from "./flush.worker.ts";
import { SpareWorkers } from "./spare-workers.ts";

/** Flushes after which the Worker begins: a start pays for none. */
const WORKER_FROM = 8;

const workers = new SpareWorkers(() => new Worker(new URL("./flush.worker.ts", import.meta.url).href));

export type LogFlushOptions = {
  /** The Worker has died: the process must stop. */
  fatal(error: Error): void;
};

export class LogFlush {
  readonly #log: number;
  readonly #options: LogFlushOptions;
  #worker: Worker | undefined;
  #isReady = false;
  #flushes = 0;
  #waiting: PromiseWithResolvers<void> | undefined;

  /** `file` is the database, whose log is there already. */
  constructor(file: string, options: LogFlushOptions) {
    this.#log = openSync(`${file}-wal`, "r");
    this.#options = options;
  }

  /**
   * Resolves when everything that was committed before is on the disk; rejects with SQLite's code of a flush that failed. One at a time. The first
   * ones, before the Worker is there, are made on the spot.
   */
  async flush(): Promise<void> {
    this.#flushes += 1;
    if (this.#flushes === WORKER_FROM) this.#worker = this.#start();
    if (!this.#worker || !this.#isReady) {
      this.#flushHere();
      return;
    }
    this.#waiting = Promise.withResolvers();
    // Waiting for the disk keeps the process alive.
    this.#worker.ref();
    this.#worker.postMessage("flush" satisfies FlushOrder);
    await this.#waiting.promise;
  }

  /** After the last flush has ended. */
  close(): void {
    if (this.#worker && this.#isReady && !this.#waiting) workers.leave(this.#worker);
    else this.#worker?.terminate();
    closeSync(this.#log);
  }

  #flushHere(): void {
    try {
      fdatasyncSync(this.#log);
    } catch (error) {
      throw failed((error as Error).message);
    }
  }

  #start(): Worker {
    const worker = workers.take();
    worker.onmessage = ({ data }: MessageEvent<FlushReport>) => this.#hear(data);
    worker.onerror = ({ message }) => {
      const error = failed(`the worker that flushes has died: ${message}`);
      if (this.#waiting) this.#end(error);
      else this.#options.fatal(error);
    };
    worker.postMessage({ log: this.#log } satisfies FlushOrder);
    return worker;
  }

  #hear(report: FlushReport): void {
    if ("error" in report) this.#end(failed(report.error));
    else if (report.done === "ready") this.#isReady = true;
    // In a turn of its own: who waits may run the loop on its own, as tests do, and a Worker's message that is not over keeps back the next.
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

/** In the words and with the code of SQLite, which flushes on its own at other times. */
const failed = (why: string): Error =>
  Object.assign(new Error("disk I/O error", { cause: why }), { code: "SQLITE_IOERR_FSYNC" });
