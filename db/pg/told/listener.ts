// Receives messages between nodes over one connection for all listeners of this node. Whenever messages may have been missed, every
// listener gets "everything": when it starts to listen, after a reconnect, when a node has sent more than was received, when a node has
// gone or is silent for too long, and when no node sends anything.
import { SQL } from "bun";
import type { Clock, Timer } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { CONNECT_SECONDS } from "../find-primary.ts";
import type { Primary } from "../primary.ts";
import { CHANNEL, type Notice, readNotice } from "./notice.ts";
import { type Teller, Tellers } from "./tellers.ts";

/** Nodes send a heartbeat each second. */
export const SILENCE_MS = 3_000;
const LOOK_MS = 500;

type Options = { readonly primary: Pick<Primary, "host">; readonly clock: Clock };

/** Called with each notice; `all` if something may have been missed. */
export type Hear = (notice: Notice) => void;

export class Listener {
  readonly #options: Options;
  readonly #hearers = new Set<Hear>();
  readonly #tellers = new Tellers(SILENCE_MS);
  #timer: Timer | undefined;
  #sql: SQL | undefined;
  #connecting: Promise<void> | undefined;
  #isListening = false;
  #tried_at = 0;
  /** When the sending nodes were last seen. */
  #seen_at = 0;
  #isClosed = false;

  constructor(options: Options) {
    this.#options = options;
  }

  /** Subscribes to notices, beginning with "everything" once it listens. Returns a function to unsubscribe. */
  hear(hear: Hear): () => void {
    // Earlier notices may have been missed.
    if (this.#timer) hear(EVERYTHING);
    else this.#begin();
    this.#hearers.add(hear);
    return () => {
      this.#hearers.delete(hear);
      if (this.#hearers.size === 0) this.#end();
    };
  }

  /** Processes the database's data about every sending node. Called each time this node checks the others. */
  see(tellers: readonly Teller[]): void {
    if (!this.#timer) return;
    this.#seen_at = this.#options.clock.monotonic();
    const found = this.#tellers.see(tellers, this.#seen_at);
    if (found !== "nothing") this.#everything();
    // The connection may hang, or lead to a database that is no longer the primary.
    if (found === "missed") this.#again();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#end();
    await this.#connecting;
  }

  #begin(): void {
    const { clock } = this.#options;
    this.#seen_at = clock.monotonic();
    this.#timer = clock.every(LOOK_MS, () => this.#look());
    this.#again();
  }

  /** Closes the connection when the last listener has unsubscribed. */
  #end(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#tellers.clear();
    this.#disconnect();
  }

  #look(): void {
    const now = this.#options.clock.monotonic();
    const isSilent = now - this.#seen_at >= SILENCE_MS;
    const isDeaf = !this.#isListening && now - this.#tried_at >= SILENCE_MS;
    if (isSilent) {
      this.#seen_at = now;
      this.#everything();
    }
    if (isSilent || isDeaf) this.#again();
  }

  #again(): void {
    this.#connecting ??= this.#connect()
      .catch((error) => this.#timer && log("db").warn("what other nodes tell cannot be heard: {error}", { error }))
      .finally(() => {
        this.#connecting = undefined;
      });
  }

  async #connect(): Promise<void> {
    const { primary, clock } = this.#options;
    this.#disconnect();
    this.#tried_at = clock.monotonic();
    const host = await primary.host();
    if (!this.#timer || this.#isClosed) return;
    const sql = new SQL(host, { max: 1, connectionTimeout: CONNECT_SECONDS });
    this.#sql = sql;
    const isNow = (): boolean => sql === this.#sql;
    await sql.listen(
      CHANNEL,
      (text) => isNow() && this.#hear(readNotice(text)),
      () => isNow() && this.#listens(),
    );
  }

  #disconnect(): void {
    const before = this.#sql;
    this.#sql = undefined;
    this.#isListening = false;
    void before?.close({ timeout: 0 }).catch(() => {});
  }

  #listens(): void {
    this.#isListening = true;
    this.#tellers.catchUp();
    this.#everything();
  }

  #hear(notice: Notice): void {
    this.#tellers.hear(notice, this.#options.clock.monotonic());
    this.#say(notice);
  }

  #everything(): void {
    this.#say(EVERYTHING);
  }

  #say(notice: Notice): void {
    for (const hear of this.#hearers) hear(notice);
  }
}

/** From no particular node. */
const EVERYTHING: Notice = { epoch: 0, all: true };
