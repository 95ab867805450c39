// Hears what the active node tells the others, over one connection for all of a node that want to know. Whatever may have been missed is told to
// each of them as "everything": when it begins to listen, when it does so again after its connection broke, when nothing was heard for a while,
// and when another node has become the active one.
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
  readonly primary: Pick<Primary, "host">;
  readonly clock: Clock;
  /** Several nodes tell at the same time, each by its epoch; default: one does, and a new epoch is another one that has followed it. */
  readonly isAmongSeveral?: boolean;
};

/** Called with each notice; `all` where something may have been missed. */
export type Hear = (notice: Notice) => void;

export class Listener {
  readonly #options: ListenerOptions;
  readonly #hearers = new Set<Hear>();
  #timer: Timer | undefined;
  #sql: SQL | undefined;
  #connecting: Promise<void> | undefined;
  #epoch = 0;
  /** When each node of several was heard last. */
  readonly #tellers = new Map<number, number>();
  #heard_at = 0;
  #isClosed = false;

  constructor(options: ListenerOptions) {
    this.#options = options;
  }

  /** From now on this is called, first with "everything" once it listens. Answers how to end that. */
  hear(hear: Hear): () => void {
    // Whoever comes later may have missed what was told before.
    if (this.#timer) hear({ epoch: this.#epoch, all: true });
    else this.#begin();
    this.#hearers.add(hear);
    return () => {
      this.#hearers.delete(hear);
      if (this.#hearers.size === 0) this.#end();
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#end();
    await this.#connecting;
  }

  #begin(): void {
    const { clock } = this.#options;
    this.#heard_at = clock.monotonic();
    this.#timer = clock.every(LOOK_MS, () => this.#look());
    this.#again();
  }

  /** Nobody wants to hear. */
  #end(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#disconnect();
  }

  #disconnect(): void {
    const before = this.#sql;
    this.#sql = undefined;
    void before?.close({ timeout: 0 }).catch(() => {});
  }

  #say(notice: Notice): void {
    for (const hear of this.#hearers) hear(notice);
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
    if (silent.length > 0) this.#say({ epoch: this.#epoch, all: true });
  }

  #again(): void {
    this.#connecting ??= this.#connect()
      .catch((error) => this.#timer && log("db").warn("what other nodes tell cannot be heard: {error}", { error }))
      .finally(() => {
        this.#connecting = undefined;
      });
  }

  async #connect(): Promise<void> {
    this.#disconnect();
    const host = await this.#options.primary.host();
    if (!this.#timer || this.#isClosed) return;
    const sql = new SQL(host, { max: 1, connectionTimeout: CONNECT_SECONDS });
    this.#sql = sql;
    const isNow = (): boolean => sql === this.#sql;
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
      this.#say(notice);
      return;
    }
    const isNext = notice.epoch !== this.#epoch;
    this.#epoch = notice.epoch;
    this.#say(isNext ? { epoch: notice.epoch, all: true } : notice);
  }

  #everything(): void {
    this.#heard_at = this.#options.clock.monotonic();
    this.#say({ epoch: this.#epoch, all: true });
  }
}
