// The single writer. Batches that arrive in one turn of the event loop, or during the previous flush, share one transaction and one flush.
// Each has its own savepoint, so that a rejected batch does not affect the others (rules ST-1 to ST-6).
import type { Database, Statement as Prepared } from "bun:sqlite";
import { keepProcessAlive, systemClock, type Timer } from "#base/clock.ts";
import { failpoint } from "#base/failpoint.ts";
import { isTraceEnabled, log } from "#base/log.ts";
import { CommitSpan } from "./commit-span.ts";
import { CommitTrace } from "./commit-trace.ts";
import { type CommitFigures, measureBatch, type Pending } from "./pending.ts";
import { failsWholeGroup, isDiskError, isIntegrityError, toCommitError } from "./refusal.ts";
import { Settlements } from "./settlements.ts";
import type { Statement } from "./sql.ts";
import { CommitError } from "./store.ts";

/** Maximum rows of a group, so that one commit blocks the event loop for less than 2 ms. */
const MAX_GROUP_ROWS = 500;
const MAX_GROUP_BYTES = 256 * 1024;

/** Retry interval for a database that another program holds, and the default time after which waiting batches are rejected. */
const LOCK_RETRY_MS = 20;
const LOCK_TIMEOUT_MS = 5_000;

export type WriterOptions = {
  epoch: number;
  /** How long batches wait for another program that holds the database, in milliseconds; default 5 s. Does not block the event loop. */
  heldMs?: number;
  /** Maximum bytes of waiting batches before new ones are rejected as `overloaded`. */
  queueBytes?: number;
  /** Resolves when everything committed before is on disk, without blocking the event loop. The connection itself does not flush. */
  flush(): Promise<void>;
  /** Called after each group that is on disk. */
  committed(): void;
  /** Called with the reason of a rejected write, before its caller gets it. */
  refused?(error: CommitError): void;
  /** Called when the disk can no longer be trusted, or another process owns the data: the process must exit. */
  fatal(error: Error): void;
};

export class Writer {
  readonly #db: Database;
  readonly #options: WriterOptions;
  readonly #prepared = new Map<string, Prepared>();
  readonly #settlements = new Settlements();
  #queue: Pending[] = [];
  #queuedBytes = 0;
  /** A group is scheduled or being written. */
  #isBusy = false;
  #flushing: Promise<void> | undefined;
  #stopped: CommitError | undefined;
  #drainWaiters: (() => void)[] = [];
  #diskErrors = 0;
  /** When another program began to hold the database, on the monotonic clock. */
  #lockedSince: number | undefined;
  /** Keeps the process alive. With only the clock's timers, a command could exit while it still waits. */
  #keepAlive: Timer | undefined;
  readonly #trace = new CommitTrace<Pending>();
  /** Groups and batches so far, for the log and the benchmark. */
  readonly counts = { groups: 0, batches: 0, rows: 0 };
  /** Observes the duration of each group, including its flush, and its rows, for metrics. */
  watch: CommitFigures["watch"];

  constructor(db: Database, options: WriterOptions) {
    this.#db = db;
    this.#options = options;
  }

  /** Resolves when the batch is flushed to disk. */
  submit(batch: readonly Statement[]): Promise<void> {
    if (this.#stopped) return Promise.reject(this.#stopped);
    if (batch.length === 0) return Promise.resolve();
    const { rows, bytes } = measureBatch(batch);
    if (this.#queuedBytes > 0 && this.#queuedBytes + bytes > (this.#options.queueBytes ?? 64 * 1024 * 1024)) {
      return Promise.reject(new CommitError("overloaded", "too many writes are waiting"));
    }
    const span = CommitSpan.begin("sqlite", batch, rows);
    const settled = new Promise<void>((resolve, reject) => {
      const pending = { batch, rows, bytes, span, resolve, reject };
      if (isTraceEnabled()) this.#trace.onSubmit(pending);
      this.#queue.push(pending);
      this.#queuedBytes += bytes;
      this.#schedule();
    });
    return span?.endWith(settled) ?? settled;
  }

  /**
   * Resolves when everything that the connection currently shows is on disk; undefined if it already is. Rejects permanently after a failed
   * flush.
   */
  get flushing(): Promise<void> | undefined {
    return this.#flushing;
  }

  /** Rejects new batches and resolves when the waiting ones are settled. */
  async stop(): Promise<void> {
    this.#stopped ??= new CommitError("closed", "the store is closing");
    if (this.#isBusy) await new Promise<void>((resolve) => this.#drainWaiters.push(resolve));
    await this.#settlements.whenDrained();
    for (const prepared of this.#prepared.values()) prepared.finalize();
    this.#prepared.clear();
  }

  #schedule(): void {
    if (this.#isBusy) return;
    this.#isBusy = true;
    setImmediate(() => this.#runGroup());
  }

  #runGroup(): void {
    if (!this.#tryBegin()) {
      systemClock.after(LOCK_RETRY_MS, () => this.#runGroup());
      return;
    }
    const group = this.#takeGroup();
    const settle = group.length > 0 ? this.#write(group) : undefined;
    if (!settle) {
      this.#end();
      return;
    }
    const flushing = this.#options.flush().then(settle, (error) => {
      this.#fail(group, error);
      throw error;
    });
    this.#flushing = flushing;
    flushing.then(
      () => {
        this.#flushing = undefined;
        this.#end();
      },
      () => this.#end(),
    );
  }

  /** Batches that arrived in between form the next group. */
  #end(): void {
    this.#isBusy = false;
    if (this.#queue.length > 0) this.#schedule();
    else for (const resolve of this.#drainWaiters.splice(0)) resolve();
  }

  /**
   * Opens the transaction. Returns false while another program, such as someone's SQLite shell, holds the database; nothing was tried, and
   * it is retried soon. Batches that have waited too long are rejected (rule ST-10).
   */
  #tryBegin(): boolean {
    try {
      if (this.#queue.length > 0) this.#execute("begin immediate");
      if (this.#lockedSince !== undefined) log("db").info("the database is free again");
      this.#onUnlocked();
      return true;
    } catch (error) {
      const refusal = toCommitError(error);
      if (refusal.reason !== "overloaded") {
        this.#fail(this.#takeGroup(), error);
        return true;
      }
      if (this.#lockedSince === undefined) log("db").warn("another program holds the database; writes wait for it");
      this.#lockedSince ??= systemClock.monotonic();
      this.#keepAlive ??= keepProcessAlive();
      if (systemClock.monotonic() - this.#lockedSince < (this.#options.heldMs ?? LOCK_TIMEOUT_MS)) return false;
      log("db").error("another program still holds the database; the writes that waited are refused");
      this.#onUnlocked();
      for (const pending of this.#queue.splice(0)) pending.reject(refusal);
      this.#queuedBytes = 0;
      return true;
    }
  }

  #onUnlocked(): void {
    this.#lockedSince = undefined;
    this.#keepAlive?.cancel();
    this.#keepAlive = undefined;
  }

  /** Commits the group. Returns a function that answers the callers once it is flushed; undefined when there is nothing to flush. */
  #write(group: Pending[]): (() => void) | undefined {
    const settles: (() => void)[] = [];
    const startedAt = this.watch?.now() ?? 0;
    const getElapsedMs = this.#trace.begin();
    try {
      this.#checkOwner();
      for (const pending of group) {
        pending.span?.sending(group.length);
        const refusal = group.length === 1 ? this.#apply(pending.batch) : this.#applyInSavepoint(pending.batch);
        settles.push(refusal ? () => pending.reject(refusal) : pending.resolve);
        if (refusal && group.length === 1) {
          this.#db.run("rollback");
          pending.reject(refusal);
          return undefined;
        }
      }
      failpoint("before_commit");
      this.#execute("commit");
      failpoint("after_commit");
    } catch (error) {
      this.#fail(group, error);
      return undefined;
    }
    return () => {
      this.counts.groups += 1;
      this.counts.batches += group.length;
      this.watch?.flushed(
        this.watch.now() - startedAt,
        group.reduce((sum, { rows }) => sum + rows, 0),
      );
      if (getElapsedMs) this.#trace.onCommit(group, this.counts.groups, getElapsedMs());
      this.#options.committed();
      this.#settlements.add(settles);
    };
  }

  #takeGroup(): Pending[] {
    let rows = 0;
    let bytes = 0;
    let count = 0;
    for (const pending of this.#queue) {
      rows += pending.rows;
      bytes += pending.bytes;
      if (count > 0 && (rows > MAX_GROUP_ROWS || bytes > MAX_GROUP_BYTES)) break;
      count += 1;
      this.counts.rows += pending.rows;
      this.#queuedBytes -= pending.bytes;
    }
    if (count === this.#queue.length) {
      const all = this.#queue;
      this.#queue = [];
      return all;
    }
    return this.#queue.splice(0, count);
  }

  #checkOwner(): void {
    const owner = this.#prepare("select value from epoch where id = 1").values()[0]?.[0];
    if (owner === this.#options.epoch) return;
    throw new CommitError("closed", `another process owns this data directory (epoch ${owner})`);
  }

  #apply(batch: readonly Statement[]): CommitError | undefined {
    try {
      for (const { sql, rows, expect } of batch) {
        const prepared = this.#prepare(sql);
        for (const row of rows) {
          const { changes } = prepared.run(...(row as never[]));
          if (expect !== undefined && changes !== expect)
            return new CommitError("stale", "the row has changed in the meantime");
        }
      }
      return undefined;
    } catch (error) {
      if (failsWholeGroup(error) || !this.#db.inTransaction) throw error;
      return toCommitError(error);
    }
  }

  #applyInSavepoint(batch: readonly Statement[]): CommitError | undefined {
    this.#execute("savepoint batch");
    const refusal = this.#apply(batch);
    if (refusal) this.#execute("rollback to batch");
    this.#execute("release batch");
    return refusal;
  }

  /**
   * Handles the failure of a whole group: no batch is acknowledged. After a failed flush, a second disk error, or when another process has
   * taken over, this process must exit; waiting batches are rejected as `closed`, since they were not tried.
   */
  #fail(group: Pending[], error: unknown): void {
    const refusal = error instanceof CommitError ? error : toCommitError(error);
    try {
      if (this.#db.inTransaction) this.#db.run("rollback");
    } catch {
      // A transaction that cannot be ended is fatal, which is checked below.
    }
    if (isDiskError(error)) this.#diskErrors += 1;
    this.#options.refused?.(refusal);
    const isFatal =
      refusal.reason === "closed" || isIntegrityError(error) || this.#diskErrors > 1 || this.#db.inTransaction === true;
    for (const pending of group) pending.reject(refusal);
    if (!isFatal) return;
    const stopped = new CommitError("closed", "the store has stopped after a failure", { cause: error });
    this.#stopped = stopped;
    for (const pending of this.#queue.splice(0)) pending.reject(stopped);
    this.#queuedBytes = 0;
    this.#options.fatal(error instanceof Error ? error : new Error(String(error)));
  }

  #execute(sql: string): void {
    this.#prepare(sql).run();
  }

  #prepare(sql: string): Prepared {
    let prepared = this.#prepared.get(sql);
    if (!prepared) {
      prepared = this.#db.prepare(sql);
      this.#prepared.set(sql, prepared);
    }
    return prepared;
  }
}
