// The pool of reader Workers for `store.scan`. A Worker starts with its first query, so Workers do not delay the server's start. When too
// many queries wait, new ones are rejected. One person's queries never occupy all Workers.
import { SpareWorkers } from "./spare-workers.ts";
import type { Query, Value } from "./sql.ts";
import { CommitError } from "./store.ts";
import { FairScheduler, getCurrentUser } from "./turns.ts";

/** Maximum Workers. Each is started only when all earlier ones are busy. */
const WORKER_COUNT = 3;
/** Maximum waiting queries for each Worker. */
const MAX_WAITING_PER_WORKER = 256;
const MAX_ROWS = 50_000;

const workers = new SpareWorkers(() => new Worker(new URL("./reader.worker.ts", import.meta.url).href));

type PendingQuery = { resolve(rows: Value[][]): void; reject(error: Error): void };
type Reader = { worker: Worker | undefined; pending: PendingQuery | undefined };
type Answer = { rows?: Value[][]; error?: string; code?: string };

export class Readers {
  readonly #file: string;
  readonly #readers: readonly Reader[];
  readonly #rows: number;
  readonly #turns: FairScheduler;
  #closed = false;

  constructor(file: string, options: { workers?: number; rows?: number } = {}) {
    this.#file = file;
    this.#rows = options.rows ?? MAX_ROWS;
    const workerCount = options.workers ?? WORKER_COUNT;
    this.#readers = Array.from({ length: workerCount }, () => ({ worker: undefined, pending: undefined }));
    this.#turns = new FairScheduler({
      slots: workerCount,
      maxPerUser: workerCount - 1,
      limit: workerCount * MAX_WAITING_PER_WORKER,
    });
  }

  /** Runs the query on a Worker when the current user has a turn. Rejects with 503 when too many queries are waiting. */
  async scan<T>(query: Query<T>): Promise<T[]> {
    if (this.#closed) throw toStoppingError();
    const rows = await this.#turns.run(getCurrentUser(), () => this.#runQuery(query));
    return rows.map(query.map);
  }

  #runQuery({ sql, params, report }: Pick<Query<unknown>, "sql" | "params" | "report">): Promise<Value[][]> {
    // Reports go to the last free reader, which caches their data (db/reports/usage/parts.ts). Other queries go to the first.
    const isFree = ({ pending }: Reader): boolean => pending === undefined;
    const reader = report ? this.#readers.findLast(isFree) : this.#readers.find(isFree);
    if (this.#closed || !reader) return Promise.reject(toStoppingError());
    reader.worker ??= this.#start(reader);
    const { worker } = reader;
    return new Promise((resolve, reject) => {
      reader.pending = { resolve, reject };
      // Keeps the process alive until the answer arrives. An idle reader does not.
      worker.ref();
      worker.postMessage({ sql, params, limit: this.#rows, report });
    });
  }

  /**
   * Stops all readers and waits until they have closed the database: a connection that closes while the next one opens would make it appear
   * locked. A reader that is running a query ends after it, without being awaited.
   */
  async close(): Promise<void> {
    this.#closed = true;
    this.#turns.rejectAll(toStoppingError());
    const ended = this.#readers.map((reader) => {
      const { worker, pending } = reader;
      if (!worker) return Promise.resolve();
      reader.pending = undefined;
      pending?.reject(toStoppingError());
      return pending ? worker.terminate() : closeWorker(worker);
    });
    await Promise.all(ended);
  }

  #start(reader: Reader): Worker {
    const worker = workers.acquire();
    worker.onmessage = ({ data }: MessageEvent<Answer>) => {
      const { pending } = reader;
      reader.pending = undefined;
      worker.unref();
      if (data.rows) pending?.resolve(data.rows);
      else pending?.reject(Object.assign(new Error(`reader: ${data.error}`), { code: data.code }));
    };
    worker.onerror = (event) => this.#onWorkerDeath(reader, event.message);
    worker.postMessage({ open: this.#file });
    return worker;
  }

  /** Rejects the query of a reader that has died. A later query starts another Worker. */
  #onWorkerDeath(reader: Reader, message: string): void {
    const { worker, pending } = reader;
    reader.worker = undefined;
    reader.pending = undefined;
    worker?.terminate();
    pending?.reject(new Error(`reader: ${message}`));
  }
}

/** Resolves when the Worker's connection is closed. Terminates a Worker that cannot close it or is dead. */
const closeWorker = (worker: Worker): Promise<void> =>
  new Promise((resolve) => {
    const end = (): void => {
      worker.terminate();
      resolve();
    };
    worker.onmessage = ({ data }: MessageEvent<{ closed: boolean }>) => {
      if (!data.closed) return end();
      workers.release(worker);
      resolve();
    };
    worker.onerror = end;
    worker.ref();
    worker.postMessage({ close: true });
  });

const toStoppingError = (): CommitError => new CommitError("closed", "the store is closing");
