// The reads of a store on PostgreSQL. They use the primary, so they see every commit that has resolved.
import type { SQL } from "bun";
import { systemClock } from "#base/clock.ts";
import { finishesWithin } from "#base/retry.ts";
import type { Query } from "../engine/sql.ts";
import { CommitError } from "../engine/store.ts";
import { FairScheduler, getCurrentUser } from "../engine/turns.ts";
import { queryText } from "./bind.ts";
import { DEFAULT_WAIT_MS, MAX_READERS, type Primary } from "./primary.ts";
import { isAnswer, toCommitError } from "./refusal.ts";
import { PgReports } from "./reports.ts";
import { toStorableValue, toStoredValue } from "./stored-value.ts";

/** How often a read is retried after its connection failed. */
const MAX_RETRIES = 2;

/** Maximum lists and reports that run or wait. */
const MAX_SCANS = 512;

/** The common base of both PostgreSQL stores: the store that writes, and the store of a read-only node. */
export abstract class PgReads {
  protected readonly primary: Primary;
  #reports: PgReports | undefined;
  /** One person's lists and reports never take all connections. */
  readonly #turns = new FairScheduler({
    slots: Number.POSITIVE_INFINITY,
    maxPerUser: MAX_READERS - 1,
    limit: MAX_SCANS,
  });
  #isClosed = false;
  readonly #wait_ms: number;
  /** Monotonic time of the last successful read. */
  #answeredAt = Number.NEGATIVE_INFINITY;

  /** `wait_ms`: how long a read waits for the database; reports may take longer. */
  constructor(primary: Primary, wait_ms = DEFAULT_WAIT_MS) {
    this.primary = primary;
    this.#wait_ms = wait_ms;
  }

  async get<T>(query: Query<T>): Promise<T | undefined> {
    return (await this.all(query))[0];
  }

  async all<T>(query: Query<T>): Promise<T[]> {
    const rows = await this.#read((readers, deadline) =>
      this.#withTimeout(
        readers,
        deadline,
        readers.unsafe(queryText(query.sql), query.params.map(toStorableValue) as never[]).values(),
      ),
    );
    return (rows as unknown as unknown[][]).map((row) => query.map(row.map(toStoredValue)));
  }

  async scan<T>(query: Query<T>): Promise<T[]> {
    return this.#turns.run(getCurrentUser(), () => this.#scan(query));
  }

  async #scan<T>(query: Query<T>): Promise<T[]> {
    const { report, params } = query;
    if (!report) return this.all(query);
    this.#reports ??= new PgReports();
    const reports = this.#reports;
    return [query.map([await this.#read((readers) => reports.run(readers, report, String(params[0])))])];
  }

  /** Closes all connections: pending operations become `unknown`, and later ones connect to the primary again. */
  reconnect(): void {
    this.primary.dropConnections();
  }

  /** Rejects later reads as `closed`. */
  protected endReads(): void {
    this.#isClosed = true;
  }

  /**
   * Retries a read within its time limit. A connection may have broken, or timed out while this process was suspended, although the
   * database is available.
   */
  async #read<T>(read: (readers: SQL, deadline: number) => Promise<T>): Promise<T> {
    const deadline = systemClock.monotonic() + this.#wait_ms;
    for (let retryCount = 0; ; retryCount++) {
      if (this.#isClosed) throw new CommitError("closed", "the store is closing");
      const readers = await this.primary.readers(deadline - systemClock.monotonic());
      try {
        return await read(readers, deadline);
      } catch (error) {
        if (isAnswer(error)) throw toCommitError(error);
        // After a second failure, the host may be down, so the primary is looked for again before a write.
        if (retryCount > 0) this.primary.dropConnections(readers);
        // A failed read is never reported as `unknown`.
        if (retryCount >= MAX_RETRIES || systemClock.monotonic() >= deadline)
          throw new CommitError("unreachable", "the database does not answer", { cause: error });
      }
    }
  }

  /** Throws after the time limit. If no other read has succeeded since, closes the connections, as the machine may be down. */
  async #withTimeout<T>(readers: SQL, deadline: number, query: Promise<T>): Promise<T> {
    const startedAt = systemClock.monotonic();
    if (!(await finishesWithin(systemClock, Math.max(0, deadline - startedAt), query))) {
      if (this.#answeredAt < startedAt) this.primary.dropConnections(readers);
      throw new Error("no answer in time");
    }
    this.#answeredAt = systemClock.monotonic();
    return query;
  }
}
