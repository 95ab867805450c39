// Hears what nodes tell each other, over one connection for all of a node that want to know. Whatever may have been missed is told to each of them
// as "everything": when it begins to listen, when it does so again after its connection broke, when a node has told more than was heard of
// it, when a node no longer exists or says nothing for a while, and when nobody says anything.
import { SQL } from "bun";
import type { Clock, Timer } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { CONNECT_SECONDS } from "../find-primary.ts";
import type { Primary } from "../primary.ts";
import { CHANNEL, type Notice, readNotice } from "./notice.ts";
import { type Teller, Tellers } from "./tellers.ts";

/** Nodes give a sign of life each second. */
export const SILENCE_MS = 3_000;
const LOOK_MS = 500;

type Options = { readonly primary: Pick<Primary, "host">; readonly clock: Clock };

/** Called with each notice; `all` where something may have been missed. */
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
  /** When the nodes were seen last that tell. */
  #seen_at = 0;
  #isClosed = false;

  constructor(options: Options) {
    this.#options = options;
  }

  /** From now on this is called, first with "everything" once it listens. Answers how to end that. */
  hear(hear: Hear): () => void {
    // Anyone who comes later may have missed what was told before.
    if (this.#timer) hear(EVERYTHING);
    else this.#begin();
    this.#hearers.add(hear);
    return () => {
      this.#hearers.delete(hear);
      if (this.#hearers.size === 0) this.#end();
    };
  }

  /** What the database says of every node that tells: each look of this node at the others. */
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

  /** Nobody wants to hear. */
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

/** Of nobody's. */
const EVERYTHING: Notice = { epoch: 0, all: true };
