// Receives messages between nodes over one connection for all listeners of this node. Whenever messages may have been missed, every
// listener gets "everything": when it starts to listen, after a reconnect, when a node has sent more messages than were received, when a
// node has left or is silent for too long, and when no node sends messages.
import { SQL } from "bun";
import type { Clock, Timer } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { CONNECT_TIMEOUT_SECONDS } from "../find-primary.ts";
import type { Primary } from "../primary.ts";
import { CHANNEL, type Notice, readNotice } from "./notice.ts";
import { NoticeSenders, type SenderHeartbeat } from "./sent-counts.ts";

/** Nodes send a heartbeat each second. */
export const SILENCE_TIMEOUT_MS = 3_000;
const CHECK_INTERVAL_MS = 500;

type Options = { readonly primary: Pick<Primary, "host">; readonly clock: Clock };

/** Called with each notice; with `all` if notices may have been missed. */
export type NoticeHandler = (notice: Notice) => void;

export class Listener {
  readonly #options: Options;
  readonly #handlers = new Set<NoticeHandler>();
  readonly #senders = new NoticeSenders(SILENCE_TIMEOUT_MS);
  #timer: Timer | undefined;
  #sql: SQL | undefined;
  #connecting: Promise<void> | undefined;
  #isListening = false;
  #triedAt = 0;
  /** When the sending nodes were last seen. */
  #seenAt = 0;
  #isClosed = false;

  constructor(options: Options) {
    this.#options = options;
  }

  /** Subscribes to notices, beginning with "everything" once it listens. Returns a function to unsubscribe. */
  subscribe(handle: NoticeHandler): () => void {
    // Earlier notices may have been missed.
    if (this.#timer) handle(MISSED_NOTICE);
    else this.#begin();
    this.#handlers.add(handle);
    return () => {
      this.#handlers.delete(handle);
      if (this.#handlers.size === 0) this.#end();
    };
  }

  /** Processes the database's data about every sending node. Called each time this node checks the others. */
  see(senders: readonly SenderHeartbeat[]): void {
    if (!this.#timer) return;
    this.#seenAt = this.#options.clock.monotonic();
    const result = this.#senders.see(senders, this.#seenAt);
    if (result !== "nothing") this.#dispatchEverything();
    // The connection may hang, or lead to a database that is no longer the primary.
    if (result === "missed") this.#reconnect();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#end();
    await this.#connecting;
  }

  #begin(): void {
    const { clock } = this.#options;
    this.#seenAt = clock.monotonic();
    this.#timer = clock.every(CHECK_INTERVAL_MS, () => this.#checkSenders());
    this.#reconnect();
  }

  /** Closes the connection when the last listener has unsubscribed. */
  #end(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#senders.clear();
    this.#disconnect();
  }

  #checkSenders(): void {
    const now = this.#options.clock.monotonic();
    const isSilent = now - this.#seenAt >= SILENCE_TIMEOUT_MS;
    const isDisconnected = !this.#isListening && now - this.#triedAt >= SILENCE_TIMEOUT_MS;
    if (isSilent) {
      this.#seenAt = now;
      this.#dispatchEverything();
    }
    if (isSilent || isDisconnected) this.#reconnect();
  }

  #reconnect(): void {
    this.#connecting ??= this.#connect()
      .catch((error) => this.#timer && log("db").warn("cannot listen to messages of other nodes: {error}", { error }))
      .finally(() => {
        this.#connecting = undefined;
      });
  }

  async #connect(): Promise<void> {
    const { primary, clock } = this.#options;
    this.#disconnect();
    this.#triedAt = clock.monotonic();
    const host = await primary.host();
    if (!this.#timer || this.#isClosed) return;
    const sql = new SQL(host, { max: 1, connectionTimeout: CONNECT_TIMEOUT_SECONDS });
    this.#sql = sql;
    const isCurrent = (): boolean => sql === this.#sql;
    await sql.listen(
      CHANNEL,
      (text) => isCurrent() && this.#onNotice(readNotice(text)),
      () => isCurrent() && this.#onListening(),
    );
  }

  #disconnect(): void {
    const before = this.#sql;
    this.#sql = undefined;
    this.#isListening = false;
    void before?.close({ timeout: 0 }).catch(() => {});
  }

  #onListening(): void {
    this.#isListening = true;
    this.#senders.catchUp();
    this.#dispatchEverything();
  }

  #onNotice(notice: Notice): void {
    this.#senders.onNotice(notice, this.#options.clock.monotonic());
    this.#dispatch(notice);
  }

  #dispatchEverything(): void {
    this.#dispatch(MISSED_NOTICE);
  }

  #dispatch(notice: Notice): void {
    for (const handle of this.#handlers) handle(notice);
  }
}

/** The notice that others may have been missed. It has no sender. */
const MISSED_NOTICE: Notice = { epoch: 0, all: true };
