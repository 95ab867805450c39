// The pool of reader Workers behind `store.scan`. Each begins with its first query: a start of the server waits for none of them, and pays
// for none that no one needs. Bounded: when too many queries wait, new ones are refused, and one person never has all Workers.
import { SpareWorkers } from "./spare-workers.ts";
import type { Query, Value } from "./sql.ts";
import { CommitError } from "./store.ts";
import { FairScheduler, getCurrentUser } from "./turns.ts";

/** The last one is started when two are busy. */
const WORKER_COUNT = 3;
/** Queries for each Worker. */
const MAX_WAITING_PER_WORKER = 256;
const MAX_ROWS = 50_000;

const workers = new SpareWorkers(() => new Worker(new URL("./reader.worker.ts", import.meta.url).href));

type PendingQuery = { resolve(rows: Value[][]): void; reject(error: Error): void };
type Reader = { worker: Worker | undefined; asked: PendingQuery | undefined };
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
    this.#readers = Array.from({ length: workerCount }, () => ({ worker: undefined, asked: undefined }));
    this.#turns = new FairScheduler({
      slots: workerCount,
      maxPerUser: workerCount - 1,
      limit: workerCount * MAX_WAITING_PER_WORKER,
    });
  }

  /** Runs the query on a Worker when it is the turn of the person it is for. 503 when too many are waiting. */
  async scan<T>(query: Query<T>): Promise<T[]> {
    if (this.#closed) throw stopping();
    const rows = await this.#turns.run(getCurrentUser(), () => this.#runQuery(query));
    return rows.map(query.map);
  }

  #runQuery({ sql, params, report }: Pick<Query<unknown>, "sql" | "params" | "report">): Promise<Value[][]> {
    // Where several are free, reports go to the last one, which keeps what they have read (usage-parts.ts), and all else to the first.
    const isFree = ({ asked }: Reader): boolean => asked === undefined;
    const chosen = report ? this.#readers.findLast(isFree) : this.#readers.find(isFree);
    if (this.#closed || !chosen) return Promise.reject(stopping());
    chosen.worker ??= this.#start(chosen);
    const { worker } = chosen;
    return new Promise((resolve, reject) => {
      chosen.asked = { resolve, reject };
      // Waiting for an answer keeps the process alive; an idle reader does not.
      worker.ref();
      worker.postMessage({ sql, params, limit: this.#rows, report });
    });
  }

  /**
   * Stops all readers and waits until they have closed the database: a connection that closes while the next one opens would make it appear
   * locked. A reader in the middle of a query ends after it and is not waited for.
   */
  async close(): Promise<void> {
    this.#closed = true;
    this.#turns.rejectAll(stopping());
    const ended = this.#readers.map((reader) => {
      const { worker, asked } = reader;
      if (!worker) return Promise.resolve();
      reader.asked = undefined;
      asked?.reject(stopping());
      return asked ? worker.terminate() : closeWorker(worker);
    });
    await Promise.all(ended);
  }

  #start(reader: Reader): Worker {
    const worker = workers.acquire();
    worker.onmessage = ({ data }: MessageEvent<Answer>) => {
      const { asked } = reader;
      reader.asked = undefined;
      worker.unref();
      if (data.rows) asked?.resolve(data.rows);
      else asked?.reject(Object.assign(new Error(`reader: ${data.error}`), { code: data.code }));
    };
    worker.onerror = (event) => this.#onWorkerDeath(reader, event.message);
    worker.postMessage({ open: this.#file });
    return worker;
  }

  /** A reader that died takes its query with it; the next one starts another Worker. */
  #onWorkerDeath(reader: Reader, message: string): void {
    const { worker, asked } = reader;
    reader.worker = undefined;
    reader.asked = undefined;
    worker?.terminate();
    asked?.reject(new Error(`reader: ${message}`));
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

const stopping = (): CommitError => new CommitError("closed", "the store is closing");
