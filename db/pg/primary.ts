// The way to the database that takes writes. Several hosts may be named, as after `postgres://` with commas; the one that is no standby
// is the primary. One connection is the writer's; a pool reads.
import { type ReservedSQL, SQL } from "bun";
import { systemClock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { pause, within } from "#base/retry.ts";
import { CommitError } from "../engine/store.ts";
import { CONNECT_SECONDS, findPrimary } from "./find-primary.ts";
import { splitHosts } from "./hosts.ts";
import { LeftBehind } from "./left-behind.ts";

/** Milliseconds between two rounds over the hosts. */
const AGAIN_MS = 100;
/** How long anyone who needs the database waits for it before they are refused. */
export const WAIT_MS = 15_000;
export const READERS = 4;

/**
 * A transaction that stands still between its guard and its COMMIT holds the row that a takeover needs: the database ends it. No other
 * time-out is set, because a commit that is cancelled while it waits for a standby is answered as done.
 */
const WRITER_SETTINGS =
  "set idle_in_transaction_session_timeout = '2s'; set statement_timeout = 0; set lock_timeout = 0";

export class Primary {
  readonly #hosts: readonly string[];
  readonly #wait_ms: number;
  #readers: SQL | undefined;
  #sql: SQL | undefined;
  #writer: Promise<ReservedSQL> | undefined;
  /** The writer's, once it is made. */
  #connection: ReservedSQL | undefined;
  /** Those who wait for it: each is told here that it waits no longer. */
  readonly #waiting = new Set<(reason: CommitError) => void>();
  /** Why there is none, as the last try said. */
  #reason: unknown;
  /** The host of the writer's connection, with all that it takes to connect. */
  #host = "";
  #closed = false;
  /** Raised by each connection that is given up. */
  #given = 0;
  readonly #left: LeftBehind | undefined;

  /**
   * `url`: postgres://user:password@host:port[,host:port...]/database?options. `wait_ms`: how long a primary is looked for. `inOrder`: nothing is read or
   * written before what was under way on a connection that was given up has ended.
   */
  constructor(url: string, { wait_ms = WAIT_MS, inOrder = false }: { wait_ms?: number; inOrder?: boolean } = {}) {
    this.#hosts = splitHosts(url);
    this.#wait_ms = wait_ms;
    this.#left = inOrder ? new LeftBehind() : undefined;
  }

  /**
   * The writer's connection, made where none exists. Throws `unreachable` when no primary answers within so many milliseconds, however often it is looked
   * for in the meantime: nothing was sent.
   */
  async writer(ms = this.#wait_ms): Promise<ReservedSQL> {
    if (this.#connection) return this.#connection;
    const { promise, resolve, reject } = Promise.withResolvers<ReservedSQL>();
    const timer = systemClock.after(Math.max(0, ms), () => reject(noPrimary(this.#reason)));
    this.#waiting.add(reject);
    this.#made().then(resolve, reject);
    try {
      return await promise;
    } finally {
      timer.cancel();
      this.#waiting.delete(reject);
    }
  }

  /** Where reads go: to the primary, so that what was committed is read. */
  async readers(ms = this.#wait_ms): Promise<SQL> {
    const until = systemClock.monotonic() + ms;
    while (!this.#readers) await this.writer(until - systemClock.monotonic());
    return this.#readers;
  }

  /** The address of the host that takes writes. Holds a password: never logged. */
  async host(): Promise<string> {
    await this.writer();
    return this.#host;
  }

  /** The writer's connection broke, or `used`, where that is still in use: the next use makes another. */
  lost(used?: SQL | ReservedSQL): void {
    if (used && used !== this.#readers && used !== this.#connection) return;
    this.#given++;
    this.#left?.leave();
    this.#writer = undefined;
    this.#connection = undefined;
    const old = [this.#sql, this.#readers];
    this.#sql = undefined;
    this.#readers = undefined;
    for (const sql of old) void sql?.close({ timeout: 0 }).catch(() => {});
  }

  /** The connections are given up, and anyone who waits for one is refused: nothing of theirs was sent. */
  giveUp(): void {
    this.lost();
    for (const refuse of this.#waiting) refuse(noPrimary(this.#reason));
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const writer = await this.#writer?.catch(() => undefined);
    writer?.release();
    await Promise.all([this.#sql?.close(), this.#readers?.close()]);
  }

  #made(): Promise<ReservedSQL> {
    if (this.#writer) return this.#writer;
    const made = this.#connect(this.#given);
    this.#writer = made;
    made.catch(() => {
      if (this.#writer === made) this.#writer = undefined;
    });
    return made;
  }

  /** `given`: how many were given up when it was wanted; with one more nobody waits for it, but for the next one. */
  async #connect(given: number): Promise<ReservedSQL> {
    const until = systemClock.monotonic() + this.#wait_ms;
    const left = (): number => until - systemClock.monotonic();
    const isWanted = (): boolean => given === this.#given && !this.#closed;
    while (left() > 0 && !this.#closed) {
      if (!isWanted()) return this.#made();
      try {
        const { host, sql, connection } = await findPrimary(this.#hosts);
        try {
          let use: (() => void) | undefined;
          const ready = async (): Promise<void> => {
            await connection.unsafe(WRITER_SETTINGS).simple();
            await this.#left?.settled(connection, () => isWanted() && left() > 0);
            use = await this.#left?.use(connection);
          };
          const isReady = await within(systemClock, Math.max(0, left()), ready());
          if (!isWanted()) throw new Error("it was given up");
          if (!isReady || left() <= 0) throw new Error("what was sent before has not ended");
          use?.();
        } catch (error) {
          void sql.close({ timeout: 0 }).catch(() => {});
          throw error;
        }
        this.#sql = sql;
        this.#host = host;
        this.#readers = new SQL(host, { max: READERS, bigint: true, connectionTimeout: CONNECT_SECONDS });
        this.#connection = connection;
        return connection;
      } catch (error) {
        this.#reason = error;
      }
      await pause(systemClock, AGAIN_MS);
    }
    log("db").warn("no primary of PostgreSQL answers: {reason}", { reason: this.#reason });
    throw noPrimary(this.#reason);
  }
}

const noPrimary = (cause: unknown): CommitError =>
  new CommitError("unreachable", "no primary of the database answers", { cause });
