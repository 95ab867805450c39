// The only timer of the server: once a second it turns due rows into messages, and every ten seconds it lets idle actors go.
// A due row stays until its actor has handled it (the actor clears it in the same batch), so a crash repeats it and never loses it.
import type { Clock, Timer as Ticking } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { ALL_PARTS, ownParts, type Parts } from "#base/parts.ts";
import { dueTimersInParts } from "#db/due-timers.ts";
import type { Store } from "#db/engine/store.ts";
import { TIMERS_AT_ONCE, type Timer } from "#db/engine/timers.ts";

const TICK_MS = 1_000;
const SWEEP_MS = 10_000;
/** After a failed delivery the same row is tried again this much later. */
const RETRY_MS = 30_000;
/** When many fall due at once, such as all workspaces of a changed template, so many pages of them go out in one tick. */
const MAX_PAGES = 20;

export type Deliver = (timer: Timer) => Promise<void>;

export class Scheduler {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #deliver: Deliver;
  readonly #sweep: () => void;
  readonly #parts: Parts;
  readonly #running = new Map<string, Promise<void>>();
  readonly #held = new Map<string, number>();
  #ticking: Ticking[] = [];

  /** `deliver` sends the message of a due timer to its actor; `sweep` passivates idle actors. Only timers of `parts` are seen to. */
  constructor(store: Store, clock: Clock, deliver: Deliver, sweep: () => void, parts: Parts = ALL_PARTS) {
    this.#store = store;
    this.#clock = clock;
    this.#deliver = deliver;
    this.#sweep = sweep;
    this.#parts = parts;
  }

  start(): void {
    this.#ticking = [
      this.#clock.every(TICK_MS, () => void this.tick()),
      this.#clock.every(SWEEP_MS, () => this.#sweep()),
    ];
  }

  stop(): void {
    for (const ticking of this.#ticking) ticking.cancel();
  }

  /** Delivers everything due now; resolves when all of it has been handled. */
  async tick(): Promise<void> {
    const now = this.#clock.now();
    for (const [id, until] of this.#held) if (until <= now) this.#held.delete(id);
    try {
      for (let pages = 0; pages < MAX_PAGES; pages++) {
        const due = await this.#store.all(dueTimersInParts(ownParts(this.#parts), now));
        const fresh = due.filter(({ id }) => !this.#running.has(id) && !this.#held.has(id));
        await Promise.all(fresh.map((timer) => this.#fire(timer)));
        if (due.length < TIMERS_AT_ONCE || fresh.length === 0) return;
      }
    } catch (error) {
      log("scheduler").error("cannot read due timers: {error}", { error });
    }
  }

  /** Resolves when every message that is on its way now has been handled. */
  async settled(): Promise<void> {
    await Promise.all(this.#running.values());
  }

  #fire(timer: Timer): Promise<void> {
    const fired = this.#hand(timer).finally(() => this.#running.delete(timer.id));
    this.#running.set(timer.id, fired);
    return fired;
  }

  async #hand(timer: Timer): Promise<void> {
    try {
      await this.#deliver(timer);
    } catch (error) {
      this.#held.set(timer.id, this.#clock.now() + RETRY_MS);
      log("scheduler").error("timer {id} failed: {error}", { id: timer.id, error });
    }
  }
}
