// The way to the database that takes writes. Several hosts may be named, as after `postgres://` with commas; the one that is no standby
// is the primary. One connection is the writer's; a pool reads.
import { type ReservedSQL, SQL } from "bun";
import { systemClock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { pause } from "#base/retry.ts";
import { CommitError } from "../engine/store.ts";
import { CONNECT_SECONDS, findPrimary } from "./find-primary.ts";
import { hostsOf } from "./hosts.ts";

/** Milliseconds between two rounds over the hosts, and how long writes wait for a primary before they are refused. */
const AGAIN_MS = 100;
const WAIT_MS = 15_000;
const READERS = 4;

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
  /** The host of the writer's connection, with all that it takes to connect. */
  #host = "";
  #closed = false;

  /** `url`: postgres://user:password@host:port[,host:port...]/database?options. `wait_ms`: how long a primary is looked for. */
  constructor(url: string, { wait_ms = WAIT_MS }: { wait_ms?: number } = {}) {
    this.#hosts = hostsOf(url);
    this.#wait_ms = wait_ms;
  }

  /** The writer's connection, made where there is none. Throws `overloaded` when no primary answers in time: nothing was sent. */
  writer(): Promise<ReservedSQL> {
    this.#writer ??= this.#connect().catch((error) => {
      this.#writer = undefined;
      throw error;
    });
    return this.#writer;
  }

  /** Where reads go: to the primary, so that what was committed is read. */
  async readers(): Promise<SQL> {
    if (!this.#readers) await this.writer();
    return this.#readers as SQL;
  }

  /** The address of the host that takes writes. Holds a password: never logged. */
  async host(): Promise<string> {
    await this.writer();
    return this.#host;
  }

  /** The writer's connection broke, or `readers`, where they are still those in use: the next use makes another. */
  lost(readers?: SQL): void {
    if (readers && readers !== this.#readers) return;
    this.#writer = undefined;
    const old = [this.#sql, this.#readers];
    this.#sql = undefined;
    this.#readers = undefined;
    for (const sql of old) void sql?.close({ timeout: 0 }).catch(() => {});
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const writer = await this.#writer?.catch(() => undefined);
    writer?.release();
    await Promise.all([this.#sql?.close(), this.#readers?.close()]);
  }

  async #connect(): Promise<ReservedSQL> {
    const until = systemClock.monotonic() + this.#wait_ms;
    let reason: unknown;
    while (systemClock.monotonic() < until && !this.#closed) {
      try {
        const { host, sql, connection } = await findPrimary(this.#hosts);
        await connection.unsafe(WRITER_SETTINGS).simple();
        this.#sql = sql;
        this.#host = host;
        this.#readers = new SQL(host, { max: READERS, bigint: true, connectionTimeout: CONNECT_SECONDS });
        return connection;
      } catch (error) {
        reason = error;
      }
      await pause(systemClock, AGAIN_MS);
    }
    log("db").warn("no primary of PostgreSQL answers: {reason}", { reason });
    throw new CommitError("overloaded", "no primary of the database answers", { cause: reason });
  }
}
