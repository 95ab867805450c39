// The pool of reader Workers behind `store.scan`. Each begins with its first query: a start of the server waits for none of them, and pays
// for none that nobody needs. Bounded: when too many queries wait, new ones are refused.
import { AppError } from "#base/errors.ts";
import { SpareWorkers } from "./spare-workers.ts";
import type { Query, Value } from "./sql.ts";
import { CommitError } from "./store.ts";

const WORKERS = 2;
const WAITING = 256;
const ROWS = 50_000;

const workers = new SpareWorkers(() => new Worker(new URL("./reader.worker.ts", import.meta.url).href));

type Waiting = { resolve(rows: Value[][]): void; reject(error: Error): void };
type Reader = { worker: Worker | undefined; readonly waiting: Map<number, Waiting> };
type Answer = { id: number; rows?: Value[][]; error?: string; code?: string };

export class Readers {
  readonly #file: string;
  readonly #readers: readonly Reader[];
  readonly #rows: number;
  #next = 0;
  #closed = false;

  constructor(file: string, options: { workers?: number; rows?: number } = {}) {
    this.#file = file;
    this.#rows = options.rows ?? ROWS;
    this.#readers = Array.from({ length: options.workers ?? WORKERS }, () => ({
      worker: undefined,
      waiting: new Map(),
    }));
  }

  /** Runs the query on the least busy Worker. 503 when too many are waiting. */
  async scan<T>(query: Query<T>): Promise<T[]> {
    if (this.#closed) throw stopping();
    // Where both are free, reports go to the last one, which keeps what they have read (usage-parts.ts), and all else to the first.
    const favoured = query.report ? this.#readers.toReversed() : this.#readers;
    const chosen = favoured.reduce((a, b) => (b.waiting.size < a.waiting.size ? b : a));
    if (chosen.waiting.size >= WAITING) throw new AppError("overloaded", "Too many searches are running.");
    chosen.worker ??= this.#start(chosen);
    const { worker } = chosen;
    const id = this.#next++;
    const rows = await new Promise<Value[][]>((resolve, reject) => {
      chosen.waiting.set(id, { resolve, reject });
      // Waiting for an answer keeps the process alive, an idle reader does not.
      if (chosen.waiting.size === 1) worker.ref();
      worker.postMessage({ id, sql: query.sql, params: query.params, limit: this.#rows, report: query.report });
    });
    return rows.map(query.map);
  }

  /**
   * Lets all of them go and waits until they have release the database: a connection that closes while the next one opens would make that
   * one find it locked. One in the middle of a query ends with the query, and is not waited for.
   */
  async close(): Promise<void> {
    this.#closed = true;
    const ended = this.#readers.map(({ worker, waiting }) => {
      if (!worker) return Promise.resolve();
      const isIdle = waiting.size === 0;
      for (const { reject } of waiting.values()) reject(stopping());
      waiting.clear();
      return isIdle ? leaveWorker(worker) : worker.terminate();
    });
    await Promise.all(ended);
  }

  #start(reader: Reader): Worker {
    const { waiting } = reader;
    const worker = workers.take();
    worker.onmessage = ({ data }: MessageEvent<Answer>) => {
      const waiter = waiting.get(data.id);
      waiting.delete(data.id);
      if (waiting.size === 0) worker.unref();
      if (data.rows) waiter?.resolve(data.rows);
      else waiter?.reject(Object.assign(new Error(`reader: ${data.error}`), { code: data.code }));
    };
    worker.onerror = (event) => this.#died(reader, event.message);
    worker.postMessage({ open: this.#file });
    return worker;
  }

  /** A reader that died takes its queries with it; the next one starts another Worker. */
  #died(reader: Reader, message: string): void {
    for (const { reject } of reader.waiting.values()) reject(new Error(`reader: ${message}`));
    reader.waiting.clear();
    reader.worker?.terminate();
    reader.worker = undefined;
  }
}

/** Resolves when the connection of the Worker is closed; one that cannot close it, or is dead, is ended. */
const leaveWorker = (worker: Worker): Promise<void> =>
  new Promise((resolve) => {
    const end = (): void => {
      worker.terminate();
      resolve();
    };
    worker.onmessage = ({ data }: MessageEvent<{ closed: boolean }>) => {
      if (!data.closed) return end();
      workers.leave(worker);
      resolve();
    };
    worker.onerror = end;
    worker.ref();
    worker.postMessage({ close: true });
  });

const stopping = (): CommitError => new CommitError("closed", "the store is closing");
