// The answers that providers are sending. When a caller leaves early, the server continues to read the answer for a while, because a
// provider reports only at the end what it bills, including hidden reasoning. Time, bytes and the number of such answers are limited
// (rule BU-11).
import type { Clock, Timer } from "#base/clock.ts";

/** As long as callers wait for a reserved budget (src/domain/ai/ledger.ts). */
const DRAIN_TIMEOUT_MS = 60_000;
const MAX_DRAIN_BYTES = 16 * 1024 * 1024;
/** The runtime opens up to 256 connections to providers. */
const MAX_DRAINS = 64;
const MAX_USER_DRAINS = 16;

export class OpenAnswers {
  readonly #clock: Clock;
  /** Answers whose callers have left, with their users. */
  readonly #draining = new Map<OpenAnswer, string>();
  #isStopping = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns a new answer for a user's call. Its `end` must be called. */
  open(user_id: string): OpenAnswer {
    const answer: OpenAnswer = new OpenAnswer({
      clock: this.#clock,
      begin: () => {
        if (!this.#hasRoom(user_id)) return false;
        this.#draining.set(answer, user_id);
        return true;
      },
      end: () => this.#draining.delete(answer),
      isStopping: () => this.#isStopping,
    });
    return answer;
  }

  /** Number of answers that are read after their callers have left. */
  get draining(): number {
    return this.#draining.size;
  }

  /** Hangs up on all answers whose callers have left. Resolves when their calls are settled. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    const all = [...this.#draining.keys()];
    for (const answer of all) answer.hangUp();
    await Promise.all(all.map(({ ended }) => ended));
  }

  #hasRoom(user_id: string): boolean {
    const own = [...this.#draining.values()].filter((one) => one === user_id).length;
    return !this.#isStopping && this.#draining.size < MAX_DRAINS && own < MAX_USER_DRAINS;
  }
}

type Deps = {
  readonly clock: Clock;
  /** Returns whether the rest of the answer may be read. */
  readonly begin: () => boolean;
  readonly end: () => void;
  readonly isStopping: () => boolean;
};

export class OpenAnswer {
  readonly #deps: Deps;
  readonly #callerLeft = new AbortController();
  readonly #hungUp = new AbortController();
  readonly #ended = Promise.withResolvers<void>();
  #timer: Timer | undefined;
  #bytes = 0;
  #isOver = false;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Aborts when the caller leaves. Nothing more is sent to the caller. */
  get callerLeft(): AbortSignal {
    return this.#callerLeft.signal;
  }

  /** Aborts when the connection to the provider must be closed. */
  get hungUp(): AbortSignal {
    return this.#hungUp.signal;
  }

  /** Resolves when the call is settled. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /**
   * Whether the connection was closed, because the caller left, before the provider had reported the usage. The call then costs the
   * reserved amount. False if the server stops, which the caller did not cause.
   */
  get isCutShort(): boolean {
    return this.#callerLeft.signal.aborted && this.#hungUp.signal.aborted && !this.#deps.isStopping();
  }

  /**
   * Called when the caller leaves. Closes the connection if the answer does not end in time, or immediately if too many answers are being
   * read.
   */
  leave(reason: unknown): void {
    if (this.#isOver || this.#callerLeft.signal.aborted) return;
    if (this.#deps.begin()) this.#timer = this.#deps.clock.after(DRAIN_TIMEOUT_MS, () => this.hangUp());
    else this.hangUp();
    this.#callerLeft.abort(reason);
  }

  /** Counts bytes that were read after the caller left. */
  count(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > MAX_DRAIN_BYTES) this.hangUp();
  }

  hangUp(): void {
    if (!this.#isOver) this.#hungUp.abort();
  }

  /** Called once the call is settled. */
  end(): void {
    this.#isOver = true;
    this.#timer?.cancel();
    this.#deps.end();
    this.#ended.resolve();
  }
}
