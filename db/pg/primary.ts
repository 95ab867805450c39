// Connects to the database that accepts writes. The URL may name several hosts, separated by commas; the one that is not a standby is the
// primary. Uses one connection for writes and a pool for reads.
import { type ReservedSQL, SQL } from "bun";
import { systemClock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { finishesWithin, pause } from "#base/retry.ts";
import { CommitError } from "../engine/store.ts";
import { AbandonedConnections } from "./abandoned-connections.ts";
import { CONNECT_TIMEOUT_SECONDS, findPrimary } from "./find-primary.ts";
import { splitHosts } from "./hosts.ts";

/** Milliseconds between two rounds over the hosts. */
const RETRY_INTERVAL_MS = 100;
/** How long callers wait for the database before they are rejected. */
export const DEFAULT_WAIT_MS = 15_000;
export const MAX_READERS = 4;

/**
 * Makes the database abort a transaction that is idle before its COMMIT, because that transaction locks the row that a takeover needs. Sets
 * no other timeout, because a commit that is canceled while it waits for a standby is reported as done.
 */
const WRITER_SETTINGS =
  "set idle_in_transaction_session_timeout = '2s'; set statement_timeout = 0; set lock_timeout = 0";

export class Primary {
  readonly #hosts: readonly string[];
  readonly #wait_ms: number;
  #readers: SQL | undefined;
  #sql: SQL | undefined;
  #writer: Promise<ReservedSQL> | undefined;
  /** The writer's connection, once established. */
  #connection: ReservedSQL | undefined;
  /** Callers that wait for the connection. Calling one rejects it. */
  readonly #waiting = new Set<(reason: CommitError) => void>();
  /** The error of the last failed attempt. */
  #reason: unknown;
  /** The URL of the writer's host, including credentials. */
  #host = "";
  #closed = false;
  /** Incremented when a connection is abandoned. */
  #generation = 0;
  readonly #abandoned: AbandonedConnections | undefined;

  /**
   * `url`: postgres://user:password@host:port[,host:port...]/database?options. `wait_ms`: how long to look for a primary. `inOrder`: waits
   * for work on abandoned connections to end before anything is read or written.
   */
  constructor(
    url: string,
    { wait_ms = DEFAULT_WAIT_MS, inOrder = false }: { wait_ms?: number; inOrder?: boolean } = {},
  ) {
    this.#hosts = splitHosts(url);
    this.#wait_ms = wait_ms;
    this.#abandoned = inOrder ? new AbandonedConnections() : undefined;
  }

  /**
   * Returns the writer's connection, establishing it if needed. Retries until the timeout, then throws `unreachable`; nothing has been sent
   * in that case.
   */
  async writer(ms = this.#wait_ms): Promise<ReservedSQL> {
    if (this.#connection) return this.#connection;
    const { promise, resolve, reject } = Promise.withResolvers<ReservedSQL>();
    const timer = systemClock.after(Math.max(0, ms), () => reject(toUnreachableError(this.#reason)));
    this.#waiting.add(reject);
    this.#getConnection().then(resolve, reject);
    try {
      return await promise;
    } finally {
      timer.cancel();
      this.#waiting.delete(reject);
    }
  }

  /** Returns the read pool of the primary, so that committed data is visible. */
  async readers(ms = this.#wait_ms): Promise<SQL> {
    const deadline = systemClock.monotonic() + ms;
    while (!this.#readers) await this.writer(deadline - systemClock.monotonic());
    return this.#readers;
  }

  /** Returns the URL of the host that accepts writes. Contains a password: never log it. */
  async host(): Promise<string> {
    await this.writer();
    return this.#host;
  }

  /** Drops the writer's connection and the read pool; with `used`, only if `used` is still one of them. The next use connects again. */
  dropConnections(used?: SQL | ReservedSQL): void {
    if (used && used !== this.#readers && used !== this.#connection) return;
    this.#generation++;
    this.#abandoned?.abandon();
    this.#writer = undefined;
    this.#connection = undefined;
    const previous = [this.#sql, this.#readers];
    this.#sql = undefined;
    this.#readers = undefined;
    for (const sql of previous) void sql?.close({ timeout: 0 }).catch(() => {});
  }

  /** Abandons the connections and rejects all callers that wait for one. No statement of these callers was sent. */
  abandon(): void {
    this.dropConnections();
    for (const reject of this.#waiting) reject(toUnreachableError(this.#reason));
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const writer = await this.#writer?.catch(() => undefined);
    writer?.release();
    await Promise.all([this.#sql?.close(), this.#readers?.close()]);
  }

  #getConnection(): Promise<ReservedSQL> {
    if (this.#writer) return this.#writer;
    const created = this.#connect(this.#generation);
    this.#writer = created;
    created.catch(() => {
      if (this.#writer === created) this.#writer = undefined;
    });
    return created;
  }

  /** `generation`: the number of abandoned connections when the connection was requested. If it has increased, the request is obsolete. */
  async #connect(generation: number): Promise<ReservedSQL> {
    const deadline = systemClock.monotonic() + this.#wait_ms;
    const getRemainingMs = (): number => deadline - systemClock.monotonic();
    const isWanted = (): boolean => generation === this.#generation && !this.#closed;
    while (getRemainingMs() > 0 && !this.#closed) {
      if (!isWanted()) return this.#getConnection();
      try {
        const { host, sql, connection } = await findPrimary(this.#hosts);
        try {
          let markInUse: (() => void) | undefined;
          const prepareConnection = async (): Promise<void> => {
            await connection.unsafe(WRITER_SETTINGS).simple();
            await this.#abandoned?.whenEnded(connection, () => isWanted() && getRemainingMs() > 0);
            markInUse = await this.#abandoned?.use(connection);
          };
          const isReady = await finishesWithin(systemClock, Math.max(0, getRemainingMs()), prepareConnection());
          if (!isWanted()) throw new Error("it was given up");
          if (!isReady || getRemainingMs() <= 0) throw new Error("what was sent before has not ended");
          markInUse?.();
        } catch (error) {
          void sql.close({ timeout: 0 }).catch(() => {});
          throw error;
        }
        this.#sql = sql;
        this.#host = host;
        this.#readers = new SQL(host, { max: MAX_READERS, bigint: true, connectionTimeout: CONNECT_TIMEOUT_SECONDS });
        this.#connection = connection;
        return connection;
      } catch (error) {
        this.#reason = error;
      }
      await pause(systemClock, RETRY_INTERVAL_MS);
    }
    log("db").warn("no primary of PostgreSQL answers: {reason}", { reason: this.#reason });
    throw toUnreachableError(this.#reason);
  }
}

const toUnreachableError = (cause: unknown): CommitError =>
  new CommitError("unreachable", "no primary of the database answers", { cause });
