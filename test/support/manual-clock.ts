// A clock that a test advances by hand. Timers fire in order while it moves, each at its own time.
import type { Clock, Timer } from "#base/clock.ts";

type ScheduledTimer = { dueAt: number; run: () => void; every?: number };

export class ManualClock implements Clock {
  readonly #started: number;
  /**
   * Milliseconds since the start. They are counted separately, because a double that holds a time since 1970 is too coarse for the
   * fractions of a millisecond in timer delays: such a timer would never fire.
   */
  #elapsed = 0;
  readonly #timers = new Set<ScheduledTimer>();
  readonly #waiting: (() => void)[] = [];

  constructor(start = Date.UTC(2030, 0, 1)) {
    this.#started = start;
  }

  now(): number {
    return this.#started + Math.floor(this.#elapsed);
  }

  monotonic(): number {
    return this.#elapsed;
  }

  after(ms: number, run: () => void): Timer {
    return this.#add({ dueAt: this.#elapsed + ms, run });
  }

  every(ms: number, run: () => void): Timer {
    return this.#add({ dueAt: this.#elapsed + ms, run, every: ms });
  }

  /** Advances the clock and fires the timers that become due. */
  advance(ms: number): void {
    const end = this.#elapsed + ms;
    for (;;) {
      const due = this.#findDue(end);
      if (!due) break;
      this.#elapsed = due.dueAt;
      if (due.every === undefined) this.#timers.delete(due);
      else due.dueAt += due.every;
      due.run();
    }
    this.#elapsed = end;
  }

  /** Returns the first timer due, up to `end`; of equal timers the oldest. Called millions of times in tests that simulate days. */
  #findDue(end: number): ScheduledTimer | undefined {
    let next: ScheduledTimer | undefined;
    for (const timer of this.#timers) if (timer.dueAt <= end && (!next || timer.dueAt < next.dueAt)) next = timer;
    return next;
  }

  /** Jumps ahead in one step, as after a suspend: overdue timers fire once. */
  leap(ms: number): void {
    this.#elapsed += ms;
    for (const due of [...this.#timers]
      .filter(({ dueAt }) => dueAt <= this.#elapsed)
      .sort((a, b) => a.dueAt - b.dueAt)) {
      if (due.every === undefined) this.#timers.delete(due);
      else due.dueAt = this.#elapsed + due.every;
      due.run();
    }
  }

  /** Resolves once a timer exists that is due in exactly `ms`. */
  async timerIn(ms: number): Promise<void> {
    while (![...this.#timers].some(({ dueAt }) => dueAt === this.#elapsed + ms)) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  #add(entry: ScheduledTimer): Timer {
    this.#timers.add(entry);
    for (const wake of this.#waiting.splice(0)) wake();
    return { cancel: () => this.#timers.delete(entry) };
  }
}
