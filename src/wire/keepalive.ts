// Pings a yamux session: measures the round trip, and calls `onDead` when an answer is overdue. [WI-9]
import type { Clock, Timer } from "#base/clock.ts";

const MAX_U32 = 0xffff_ffff;

export interface KeepaliveOptions {
  clock: Clock;
  /** Milliseconds between pings; 0 disables automatic pings. */
  interval_ms: number;
  /** Timeout of an answer in milliseconds. */
  timeout_ms: number;
  send(value: number): void;
  onDead(): void;
  /** Called for each answer, with its round trip in milliseconds. */
  alive?(round_trip_ms: number): void;
}

type SentPing = { sentAt: number; timer: Timer; answer: PromiseWithResolvers<number | undefined> };

export class Keepalive {
  readonly #options: KeepaliveOptions;
  readonly #outstanding = new Map<number, SentPing>();
  readonly #ticker: Timer | undefined;
  #lastValue = 0;

  constructor(options: KeepaliveOptions) {
    this.#options = options;
    if (options.interval_ms > 0) {
      this.#ticker = options.clock.every(options.interval_ms, () => {
        // While an answer is outstanding, no further ping is sent: the first one's timeout decides.
        if (this.#outstanding.size === 0) void this.ping();
      });
    }
  }

  /** Sends a ping and returns its round trip in milliseconds; undefined if the session ends first. */
  ping(): Promise<number | undefined> {
    this.#lastValue = this.#lastValue === MAX_U32 ? 1 : this.#lastValue + 1;
    const { clock, timeout_ms, send, onDead } = this.#options;
    const answer = Promise.withResolvers<number | undefined>();
    const timer = clock.after(timeout_ms, onDead);
    this.#outstanding.set(this.#lastValue, { sentAt: clock.monotonic(), timer, answer });
    send(this.#lastValue);
    return answer.promise;
  }

  /** Takes an answer. Unexpected values are ignored. */
  onPong(value: number): void {
    const ping = this.#outstanding.get(value);
    if (!ping) return;
    this.#outstanding.delete(value);
    ping.timer.cancel();
    const roundTripMs = this.#options.clock.monotonic() - ping.sentAt;
    this.#options.alive?.(roundTripMs);
    ping.answer.resolve(roundTripMs);
  }

  stop(): void {
    this.#ticker?.cancel();
    for (const ping of this.#outstanding.values()) {
      ping.timer.cancel();
      ping.answer.resolve(undefined);
    }
    this.#outstanding.clear();
  }
}
