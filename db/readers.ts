// The pool of reader Workers behind `store.scan`. Bounded: when too many queries wait, new ones are refused.
import { AppError } from "#base/errors.ts";
import type { Query, Value } from "./sql.ts";

const WORKERS = 2;
const WAITING = 256;
const ROWS = 50_000;

type Waiting = { resolve(rows: Value[][]): void; reject(error: Error): void };

export class Readers {
  readonly #workers: { worker: Worker; waiting: Map<number, Waiting> }[];
  #next = 0;

  constructor(file: string) {
    this.#workers = Array.from({ length: WORKERS }, () => this.#start(file));
  }

  /** Runs the query on the least busy Worker. 503 when too many are waiting. */
  async scan<T>(query: Query<T>): Promise<T[]> {
    const chosen = this.#workers.reduce((a, b) => (b.waiting.size < a.waiting.size ? b : a));
    if (chosen.waiting.size >= WAITING) throw new AppError("overloaded", "Too many searches are running.");
    const id = this.#next++;
    const rows = await new Promise<Value[][]>((resolve, reject) => {
      chosen.waiting.set(id, { resolve, reject });
      chosen.worker.postMessage({ id, sql: query.sql, params: query.params, limit: ROWS });
    });
    return rows.map(query.map);
  }

  close(): void {
    for (const { worker, waiting } of this.#workers) {
      worker.terminate();
      for (const { reject } of waiting.values()) reject(new AppError("overloaded", "The server is stopping."));
    }
  }

  #start(file: string): { worker: Worker; waiting: Map<number, Waiting> } {
    const waiting = new Map<number, Waiting>();
    const worker = new Worker(new URL("./reader.worker.ts", import.meta.url).href);
    worker.unref();
    worker.onmessage = ({ data }: MessageEvent<{ id: number; rows?: Value[][]; error?: string }>) => {
      const waiter = waiting.get(data.id);
      waiting.delete(data.id);
      if (data.rows) waiter?.resolve(data.rows);
      else waiter?.reject(new Error(`reader: ${data.error}`));
    };
    worker.postMessage({ open: file });
    return { worker, waiting };
  }
}
