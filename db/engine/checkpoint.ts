// Keeps the write-ahead log short: triggers the checkpoint Worker after commits, and truncates the log when it exceeds a limit. The
// writer waits only for a truncation, and never for a reader. The Worker starts after enough commits.
import type { Database } from "bun:sqlite";
import { getArmedFailpoint } from "#base/failpoint.ts";
import { isIntegrityError } from "./refusal.ts";

const MAX_WAL_BYTES = 64 * 1024 * 1024;
const PAGE_BYTES = 4096;
/** Number of groups after which the Worker starts, so that it does not delay the startup. A log of this size does not slow down reads. */
const WORKER_START_COMMITS = 64;

type Report = { log?: number; checkpointed?: number; error?: string; code?: string; closed?: true };

export type CheckpointerOptions = {
  file: string;
  /** Size of the write-ahead log above which the writer truncates it itself. */
  limitBytes?: number;
  /** Groups after which the Worker starts. */
  workerFrom?: number;
  /** Called when a flush failed, or the Worker died: the process must exit. */
  fatal(error: Error): void;
};

export class Checkpointer {
  #worker: Worker | undefined;
  #groups = 0;
  readonly #db: Database;
  readonly #options: CheckpointerOptions;
  /** Whether the Worker has a message that it has not answered yet. */
  #isPending = false;
  /** Whether the last truncation failed because a reader uses the log. */
  #isHeldByReader = false;
  #hasEnded = false;
  #closed: (() => void) | undefined;

  constructor(db: Database, options: CheckpointerOptions) {
    this.#db = db;
    this.#options = options;
  }

  /** Called after each committed group. At most one message to the Worker is pending. */
  onCommit(): void {
    this.#groups += 1;
    if (this.#isPending || this.#hasEnded || this.#groups < (this.#options.workerFrom ?? WORKER_START_COMMITS)) return;
    this.#isPending = true;
    this.#worker ??= this.#start();
    this.#worker.postMessage({ committed: true });
  }

  /** Stops the Worker and checkpoints the remaining log. If the disk has no space for that, the next start reads the log. */
  async close(): Promise<void> {
    const worker = this.#worker;
    if (worker && !this.#hasEnded) {
      await new Promise<void>((resolve) => {
        this.#closed = resolve;
        worker.ref();
        worker.postMessage({ close: true });
      });
    }
    this.#hasEnded = true;
    worker?.terminate();
    this.#tryTruncate();
  }

  #start(): Worker {
    const worker = new Worker(new URL("./checkpoint.worker.ts", import.meta.url).href);
    worker.unref();
    worker.onmessage = ({ data }: MessageEvent<Report>) => this.#onReport(data);
    worker.onerror = (event) => this.#onWorkerDeath(event.message);
    worker.postMessage({ open: this.#options.file, failpoint: getArmedFailpoint() });
    return worker;
  }

  #onReport(report: Report): void {
    if (report.closed) {
      this.#closed?.();
      return;
    }
    this.#isPending = false;
    if (report.error) {
      const error = Object.assign(new Error(report.error), { code: report.code });
      if (isIntegrityError(error)) this.#options.fatal(error);
      return;
    }
    const { log = 0, checkpointed = 0 } = report;
    if (log * PAGE_BYTES <= (this.#options.limitBytes ?? MAX_WAL_BYTES)) return;
    // While a reader such as a backup uses the log, a truncation would fail. Each attempt blocks the writer, longer the larger the log is.
    if (this.#isHeldByReader && checkpointed < log) return;
    this.#isHeldByReader = checkpointed < log;
    this.#tryTruncate();
  }

  #tryTruncate(): void {
    try {
      this.#truncate();
    } catch (error) {
      // Any other error left the log unchanged.
      if (isIntegrityError(error)) this.#options.fatal(error as Error);
    }
  }

  /** Truncates the log. With an active reader, SQLite does a partial checkpoint instead of waiting, and the next report tries again. */
  #truncate(): void {
    const { timeout } = this.#db.query("pragma busy_timeout").get() as { timeout: number };
    this.#db.run("pragma busy_timeout=0");
    try {
      this.#db.run("pragma wal_checkpoint(truncate)");
    } finally {
      this.#db.run(`pragma busy_timeout=${timeout}`);
    }
  }

  #onWorkerDeath(message: string): void {
    this.#hasEnded = true;
    this.#closed?.();
    this.#options.fatal(new Error(`the checkpoint worker has died: ${message}`));
  }
}
