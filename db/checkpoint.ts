// Keeps the write-ahead log short: asks the checkpoint Worker after commits, and truncates the log itself when it has grown past a
// bound (only then does the writer wait).
import type { Database } from "bun:sqlite";

const WAL_LIMIT_BYTES = 64 * 1024 * 1024;
const PAGE_BYTES = 4096;

type Report = { log?: number; error?: string; code?: string; closed?: true };

export class Checkpointer {
  readonly #worker: Worker;
  readonly #db: Database;
  readonly #fatal: (error: Error) => void;
  #told = false;
  #closed: (() => void) | undefined;

  constructor(db: Database, file: string, fatal: (error: Error) => void) {
    this.#db = db;
    this.#fatal = fatal;
    this.#worker = new Worker(new URL("./checkpoint.worker.ts", import.meta.url).href);
    this.#worker.unref();
    this.#worker.onmessage = ({ data }: MessageEvent<Report>) => this.#report(data);
    this.#worker.postMessage({ open: file });
  }

  /** Called after each committed group; one message is under way at a time. */
  committed(): void {
    if (this.#told) return;
    this.#told = true;
    this.#worker.postMessage({ committed: true });
  }

  /** Ends the Worker and moves what is left of the log into the database. */
  async close(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#closed = resolve;
      this.#worker.ref();
      this.#worker.postMessage({ close: true });
    });
    this.#worker.terminate();
    this.#db.run("pragma wal_checkpoint(truncate)");
  }

  #report(report: Report): void {
    if (report.closed) {
      this.#closed?.();
      return;
    }
    this.#told = false;
    if (report.error) {
      if (/IOERR_(FSYNC|DIR_FSYNC)|CORRUPT/.test(report.code ?? "")) this.#fatal(new Error(report.error));
      return;
    }
    if ((report.log ?? 0) * PAGE_BYTES > WAL_LIMIT_BYTES) this.#db.run("pragma wal_checkpoint(truncate)");
  }
}
