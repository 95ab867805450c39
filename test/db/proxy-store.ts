// A `Store` that uses another process over drizzle-orm/sqlite-proxy and a bad network, whose faults depend on a seed: requests are delayed,
// rejected or sent twice, and responses are lost after the commit. A retry has the ID of its batch.
import { deserialize, serialize } from "bun:jsc";
import { type SQL, sql } from "drizzle-orm";
import { drizzle, type SqliteRemoteDatabase } from "drizzle-orm/sqlite-proxy";
import { Sequences } from "#db/engine/sequences.ts";
import type { Query, Statement, Value } from "#db/engine/sql.ts";
import { CommitError, type Refusal, type SequenceName, type Store } from "#db/engine/store.ts";
import type { ProxyAnswer, ProxyRequest } from "./proxy-server.ts";

/** Probability of each fault per request. */
export type Faults = { delay?: number; lost?: number; twice?: number; refused?: number };

export type ProxyOptions = {
  socket: string;
  epoch: number;
  random(): number;
  faults: Faults;
  /** Number of attempts before a batch's result counts as unknown. */
  attempts?: number;
  queueBytes?: number;
};

class LostResponse extends Error {}
class RejectedRequest extends Error {}

export class ProxyStore implements Store {
  readonly epoch: number;
  /** The number of faults so far, for tests that must verify that there were faults. */
  readonly faultCounts = { sent: 0, lost: 0, twice: 0, refused: 0, delayed: 0 };
  readonly #options: ProxyOptions;
  readonly #sequences = new Sequences(this);
  readonly #drizzle: SqliteRemoteDatabase;
  readonly #scans: SqliteRemoteDatabase;
  #id = "";
  #last: Promise<unknown> = Promise.resolve();
  #waitingBytes = 0;
  #closed = false;

  constructor(options: ProxyOptions) {
    this.#options = options;
    this.epoch = options.epoch;
    const readWith = (method: "all" | "scan") => async (text: string, params: Value[]) => ({
      rows: (await this.#send({ kind: "read", sql: text, params, method })).rows ?? [],
    });
    this.#scans = drizzle(readWith("scan"));
    this.#drizzle = drizzle(readWith("all"), async (queries: { sql: string; params: unknown[] }[]) => {
      const id = this.#id;
      const batchQueries = queries.map((query) => ({ sql: query.sql, params: query.params as Value[] }));
      const response = await this.#send({ kind: "batch", id, queries: batchQueries });
      if (response.refused) throw toCommitError(response.refused);
      return queries.map(() => ({ rows: [] }));
    });
  }

  async commit(batch: readonly Statement[]): Promise<void> {
    this.#refuseWhenClosed();
    const queries = batch.flatMap(toSql);
    const [first, ...rest] = queries;
    if (!first) return;
    const bytes = serialize(batch).byteLength;
    const limit = this.#options.queueBytes ?? 64 * 1024 * 1024;
    if (this.#waitingBytes > 0 && this.#waitingBytes + bytes > limit) {
      throw new CommitError("overloaded", "too many writes are waiting");
    }
    this.#waitingBytes += bytes;
    const id = crypto.randomUUID();
    // Sends one batch at a time, so that the next one cannot overtake a retry.
    const committed = this.#last.then(() => this.#commitWithRetries(id, [first, ...rest]));
    this.#last = committed.catch(() => {});
    try {
      await committed;
    } finally {
      this.#waitingBytes -= bytes;
    }
  }

  async get<T>(query: Query<T>): Promise<T | undefined> {
    return (await this.all(query))[0];
  }

  all<T>(query: Query<T>): Promise<T[]> {
    return this.#read(query, this.#drizzle);
  }

  scan<T>(query: Query<T>): Promise<T[]> {
    return this.#read(query, this.#scans);
  }

  async reserve(sequence: SequenceName, count: number): Promise<number> {
    this.#refuseWhenClosed();
    return this.#sequences.reserve(sequence, count);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#last;
  }

  async #read<T>(query: Query<T>, connection: SqliteRemoteDatabase): Promise<T[]> {
    this.#refuseWhenClosed();
    const rows = await connection.values<Value[]>(bindParameters(query.sql, query.params));
    return rows.map(query.map);
  }

  async #commitWithRetries(id: string, queries: [SQL, ...SQL[]]): Promise<void> {
    let isResponseLost = false;
    for (let attempt = 0; attempt < (this.#options.attempts ?? 20); attempt++) {
      try {
        this.#id = id;
        const [first, ...rest] = queries;
        await this.#drizzle.batch([this.#drizzle.run(first), ...rest.map((query) => this.#drizzle.run(query))]);
        return;
      } catch (error) {
        const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
        if (cause instanceof CommitError) throw cause;
        if (!(cause instanceof RejectedRequest)) isResponseLost = true;
      }
    }
    if (isResponseLost) throw new CommitError("unknown", "no answer came back");
    throw new CommitError("overloaded", "the other side turned every attempt away");
  }

  async #send(message: ProxyRequest): Promise<ProxyAnswer> {
    const { random, faults, socket } = this.#options;
    const rollChance = (chance = 0, fault: keyof ProxyStore["faultCounts"]): boolean => {
      const isHit = random() < chance;
      if (isHit) this.faultCounts[fault] += 1;
      return isHit;
    };
    const post = async (): Promise<ProxyAnswer> => {
      this.faultCounts.sent += 1;
      const response = await fetch("http://proxy/", { unix: socket, method: "POST", body: serialize(message) });
      if (!response.ok) throw new Error(await response.text());
      return deserialize(await response.arrayBuffer()) as ProxyAnswer;
    };
    if (rollChance(faults.delay, "delayed")) await Bun.sleep(random() * 3);
    if (message.kind === "read") return post();
    if (rollChance(faults.refused, "refused")) throw new RejectedRequest("turned away");
    const responses = rollChance(faults.twice, "twice") ? [post(), post()] : [post()];
    const response = await Promise.race(responses);
    await Promise.allSettled(responses);
    if (rollChance(faults.lost, "lost")) throw new LostResponse("the answer was lost");
    return response;
  }

  #refuseWhenClosed(): void {
    if (this.#closed) throw new CommitError("closed", "the store is closing");
  }
}

/** Converts each row to a query. A guard becomes an insert into a table of the other process, which rejects it if the guard fails. */
const toSql = ({ sql: text, rows, expect }: Statement): SQL[] =>
  rows.flatMap((row) =>
    expect === undefined
      ? [bindParameters(text, row)]
      : [
          bindParameters(text, row),
          sql`insert into proxy_guard select changes() = ${expect}`,
          sql`delete from proxy_guard`,
        ],
  );

/** Converts compiled SQL and its parameters to Drizzle's own value. */
const bindParameters = (text: string, params: readonly Value[]): SQL => {
  const parts = text.split("?");
  if (parts.length !== params.length + 1) throw new Error(`${params.length} parameters for: ${text}`);
  const chunks = parts.flatMap((part, i) => (i === 0 ? [sql.raw(part)] : [sql.param(params[i - 1]), sql.raw(part)]));
  return sql.join(chunks);
};

const toCommitError = ({ reason, constraint, message }: NonNullable<ProxyAnswer["refused"]>): CommitError =>
  constraint === "proxy_guard"
    ? new CommitError("stale", "the row has changed in the meantime")
    : new CommitError(reason as Refusal, message, { constraint });
