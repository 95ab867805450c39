// Pings of one yamux session: measures the way there and back, and calls `dead` once when an answer stays out. [WI-9]
import type { Clock, Timer } from "#base/clock.ts";

const MAX_U32 = 0xffff_ffff;

export interface KeepaliveOptions {
  clock: Clock;
  /** Milliseconds between pings; 0 sends none on its own. */
  interval_ms: number;
  /** Milliseconds an answer may take. */
  timeout_ms: number;
  send(value: number): void;
  dead(): void;
  /** Each answer, with the milliseconds it took. */
  alive?(round_trip_ms: number): void;
}

type Outstanding = { sent: number; timer: Timer; answer: PromiseWithResolvers<number | undefined> };

export class Keepalive {
  readonly #options: KeepaliveOptions;
  readonly #outstanding = new Map<number, Outstanding>();
  readonly #ticker: Timer | undefined;
  #last = 0;

  constructor(options: KeepaliveOptions) {
    this.#options = options;
    if (options.interval_ms > 0) {
      this.#ticker = options.clock.every(options.interval_ms, () => {
        // A peer that owes an answer is not asked again: the timeout of the first question decides.
        if (this.#outstanding.size === 0) void this.ping();
      });
    }
  }

  /** Milliseconds there and back; undefined when the session ends first. */
  ping(): Promise<number | undefined> {
    this.#last = this.#last === MAX_U32 ? 1 : this.#last + 1;
    const { clock, timeout_ms, send, dead } = this.#options;
    const answer = Promise.withResolvers<number | undefined>();
    const timer = clock.after(timeout_ms, dead);
    this.#outstanding.set(this.#last, { sent: clock.monotonic(), timer, answer });
    send(this.#last);
    return answer.promise;
  }

  /** An answer came in. Unexpected values are ignored. */
  answered(value: number): void {
    const ping = this.#outstanding.get(value);
    if (!ping) return;
    this.#outstanding.delete(value);
    ping.timer.cancel();
    const took = this.#options.clock.monotonic() - ping.sent;
    this.#options.alive?.(took);
    ping.answer.resolve(took);
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
