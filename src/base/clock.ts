// The clock. All code gets the time and sets timers through it, so that tests control time (checked by test/architecture.test.ts).

export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Returns milliseconds since 1970, UTC. */
  now(): number;
  /** Returns milliseconds of a clock that never jumps; only differences are meaningful. */
  monotonic(): number;
  /** Calls `run` once after `ms` milliseconds. Does not keep the process alive. */
  after(ms: number, run: () => void): Timer;
  /** Calls `run` every `ms` milliseconds until canceled. Does not keep the process alive. */
  every(ms: number, run: () => void): Timer;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
  every(ms, run) {
    const timer = setInterval(run, ms);
    timer.unref();
    return { cancel: () => clearInterval(timer) };
  },
};

const NO_TIMER: Timer = { cancel() {} };

/**
 * A clock for something that ends, such as a server. Disposing it cancels its repeating timers. The runtime would otherwise keep each of
 * these timers, and every object that its function uses, until the process exits.
 */
export class EndingClock implements Clock, Disposable {
  readonly #clock: Clock;
  readonly #repeating = new Set<Timer>();
  #hasEnded = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    return this.#clock.now();
  }

  monotonic(): number {
    return this.#clock.monotonic();
  }

  after(ms: number, run: () => void): Timer {
    return this.#clock.after(ms, run);
  }

  every(ms: number, run: () => void): Timer {
    if (this.#hasEnded) return NO_TIMER;
    const timer = this.#clock.every(ms, run);
    this.#repeating.add(timer);
    return {
      cancel: () => {
        timer.cancel();
        this.#repeating.delete(timer);
      },
    };
  }

  [Symbol.dispose](): void {
    this.#hasEnded = true;
    for (const timer of this.#repeating) timer.cancel();
    this.#repeating.clear();
  }
}

/** The time of something that has not happened, for clients that require the member. */
export const NEVER = "0001-01-01T00:00:00Z";

/** The first and the last time with a year of four digits. */
const MIN_TIME_MS = -62_135_596_800_000;
const MAX_TIME_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/**
 * Formats a time as RFC 3339 in UTC with milliseconds, like every time in a response (facts/platform 3.1). A time that the format cannot
 * express becomes the nearest one that it can, so that one such row does not make a list unreadable.
 */
export const toRfc3339 = (ms: number): string =>
  new Date(Math.max(MIN_TIME_MS, Math.min(ms, MAX_TIME_MS))).toISOString();

/** Formats a time as RFC 3339, or returns undefined for one that has not happened, so that the response omits it. */
export const toOptionalRfc3339 = (ms: number | null | undefined): string | undefined =>
  ms === null || ms === undefined ? undefined : toRfc3339(ms);

/** Keeps the process alive until the returned timer is canceled; a clock's timers do not. For programs that only wait for other programs. */
export const keepProcessAlive = (): Timer => {
  const timer = setInterval(() => {}, 2 ** 30);
  return { cancel: () => clearInterval(timer) };
};
