// Keeps the write-ahead log short: asks the checkpoint Worker after commits, and truncates the log itself when it has grown past a
// bound (only then does the writer wait, and never for a reader).
import type { Database } from "bun:sqlite";
import { armedFailpoint } from "#base/failpoint.ts";
import { isDistrusted } from "./refusal.ts";

const WAL_LIMIT_BYTES = 64 * 1024 * 1024;
const PAGE_BYTES = 4096;

type Report = { log?: number; checkpointed?: number; error?: string; code?: string; closed?: true };

export type CheckpointerOptions = {
  file: string;
  /** Bytes of write-ahead log above which the writer shortens it itself. */
  limitBytes?: number;
  /** The disk refused to flush, or the Worker has died: the process must stop. */
  fatal(error: Error): void;
};

export class Checkpointer {
  readonly #worker: Worker;
  readonly #db: Database;
  readonly #options: CheckpointerOptions;
  #isReported = false;
  /** Cutting was of no use: a reader holds the log. */
  #held = false;
  #ended = false;
  #closed: (() => void) | undefined;

  constructor(db: Database, options: CheckpointerOptions) {
    this.#db = db;
    this.#options = options;
    this.#worker = new Worker(new URL("./checkpoint.worker.ts", import.meta.url).href);
    this.#worker.unref();
    this.#worker.onmessage = ({ data }: MessageEvent<Report>) => this.#report(data);
    this.#worker.onerror = (event) => this.#died(event.message);
    this.#worker.postMessage({ open: options.file, failpoint: armedFailpoint() });
  }

  /** Called after each committed group; one message is under way at a time. */
  committed(): void {
    if (this.#isReported || this.#ended) return;
    this.#isReported = true;
    this.#worker.postMessage({ committed: true });
  }

  /**
   * Ends the Worker and moves what is left of the log into the database. When there is no space for that, the log stays and is
   * read at the next start.
   */
  async close(): Promise<void> {
    if (!this.#ended) {
      await new Promise<void>((resolve) => {
        this.#closed = resolve;
        this.#worker.ref();
        this.#worker.postMessage({ close: true });
      });
    }
    this.#ended = true;
    this.#worker.terminate();
    this.#tryTruncate();
  }

  #report(report: Report): void {
    if (report.closed) {
      this.#closed?.();
      return;
    }
    this.#isReported = false;
    if (report.error) {
      const error = Object.assign(new Error(report.error), { code: report.code });
      if (isDistrusted(error)) this.#options.fatal(error);
      return;
    }
    const { log = 0, checkpointed = 0 } = report;
    if (log * PAGE_BYTES <= (this.#options.limitBytes ?? WAL_LIMIT_BYTES)) return;
    // While a reader holds it, such as a backup, every try would cost the writer's time for nothing, the more the longer the log is.
    if (this.#held && checkpointed < log) return;
    this.#held = checkpointed < log;
    this.#tryTruncate();
  }

  #tryTruncate(): void {
    try {
      this.#truncate();
    } catch (error) {
      // Anything else leaves the log as it was.
      if (isDistrusted(error)) this.#options.fatal(error as Error);
    }
  }

  /** A reader that is still in the log makes this a shorter checkpoint, not a wait: the next report tries again. */
  #truncate(): void {
    const { timeout } = this.#db.query("pragma busy_timeout").get() as { timeout: number };
    this.#db.run("pragma busy_timeout=0");
    try {
      this.#db.run("pragma wal_checkpoint(truncate)");
    } finally {
      this.#db.run(`pragma busy_timeout=${timeout}`);
    }
  }

  #died(message: string): void {
    this.#ended = true;
    this.#closed?.();
    this.#options.fatal(new Error(`the checkpoint worker has died: ${message}`));
  }
}
