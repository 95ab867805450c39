// Hears what the active node tells the others. Whatever may have been missed is told as "everything": when it begins to listen, when it does
// so again after its connection broke, when nothing was heard for a while, and when another node has become the active one.
import { SQL } from "bun";
import type { Clock, Timer } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { CONNECT_SECONDS } from "../find-primary.ts";
import type { Primary } from "../primary.ts";
import { CHANNEL, type Notice, readNotice } from "./notice.ts";

/** The active node says each second that it is there. */
const SILENCE_MS = 3_000;
const LOOK_MS = 500;

export type ListenerOptions = {
  readonly primary: Primary;
  readonly clock: Clock;
  /** Several nodes tell at the same time, each by its epoch; default: one does, and a new epoch is another one that has followed it. */
  readonly isAmongSeveral?: boolean;
  /** Called with each notice; `all` where something may have been missed. */
  hear(notice: Notice): void;
};

export class Listener {
  readonly #options: ListenerOptions;
  readonly #timer: Timer;
  #sql: SQL | undefined;
  #connecting: Promise<void> | undefined;
  #epoch = 0;
  /** When each node of several was heard last. */
  readonly #tellers = new Map<number, number>();
  #heard_at: number;
  #isClosed = false;

  constructor(options: ListenerOptions) {
    this.#options = options;
    this.#heard_at = options.clock.monotonic();
    this.#timer = options.clock.every(LOOK_MS, () => this.#look());
    this.#again();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer.cancel();
    await this.#connecting;
    await this.#sql?.close({ timeout: 0 }).catch(() => {});
  }

  /** Silence: the connection may hang, or lead to a database that is no longer the primary. */
  #look(): void {
    const now = this.#options.clock.monotonic();
    if (now - this.#heard_at >= SILENCE_MS) {
      this.#tellers.clear();
      this.#everything();
      this.#again();
      return;
    }
    // Who has died may not have told what it did last.
    const silent = [...this.#tellers].filter(([, heard_at]) => now - heard_at >= SILENCE_MS);
    for (const [epoch] of silent) this.#tellers.delete(epoch);
    if (silent.length > 0) this.#options.hear({ epoch: this.#epoch, all: true });
  }

  #again(): void {
    this.#connecting ??= this.#connect()
      .catch((error) => log("db").warn("what other nodes tell cannot be heard: {error}", { error }))
      .finally(() => {
        this.#connecting = undefined;
      });
  }

  async #connect(): Promise<void> {
    const before = this.#sql;
    this.#sql = undefined;
    void before?.close({ timeout: 0 }).catch(() => {});
    const host = await this.#options.primary.host();
    if (this.#isClosed) return;
    const sql = new SQL(host, { max: 1, connectionTimeout: CONNECT_SECONDS });
    this.#sql = sql;
    const isNow = (): boolean => sql === this.#sql && !this.#isClosed;
    await sql.listen(
      CHANNEL,
      (text) => isNow() && this.#hear(readNotice(text)),
      () => isNow() && this.#everything(),
    );
  }

  #hear(notice: Notice): void {
    this.#heard_at = this.#options.clock.monotonic();
    if (this.#options.isAmongSeveral) {
      this.#tellers.set(notice.epoch, this.#heard_at);
      this.#options.hear(notice);
      return;
    }
    const isNext = notice.epoch !== this.#epoch;
    this.#epoch = notice.epoch;
    this.#options.hear(isNext ? { epoch: notice.epoch, all: true } : notice);
  }

  #everything(): void {
    this.#heard_at = this.#options.clock.monotonic();
    this.#options.hear({ epoch: this.#epoch, all: true });
  }
}
