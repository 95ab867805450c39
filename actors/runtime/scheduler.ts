// The server's only scheduler: once a second it turns due rows into messages, and every ten seconds it drops idle actors. A due row stays
// until its actor has handled it (the actor clears it in the same batch), so a crash repeats it and never loses it.
import type { Clock, Timer as Ticking } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { ALL_SHARDS, type Shards } from "#base/shards.ts";
import { listOwnDueTimers } from "#db/due-timers.ts";
import type { Store } from "#db/engine/store.ts";
import { MAX_DUE_TIMERS, type Timer } from "#db/engine/timers.ts";
import { findOwnRows } from "#db/own-rows.ts";

const TICK_INTERVAL_MS = 1_000;
const SWEEP_INTERVAL_MS = 10_000;
/** Delay before a failed delivery is retried. */
const RETRY_MS = 30_000;
/** Maximum pages of timers delivered per tick, for example when a template change makes all of its workspaces due. */
const MAX_PAGES = 20;

export type Deliver = (timer: Timer) => Promise<void>;

export class Scheduler {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #deliver: Deliver;
  readonly #sweep: () => void;
  readonly #shards: Shards;
  readonly #running = new Map<string, Promise<void>>();
  readonly #retryAt = new Map<string, number>();
  #ticking: Ticking[] = [];

  /** `deliver` sends a due timer's message to its actor; `sweep` passivates idle actors. Only handles timers of the shards in `shards`. */
  constructor(store: Store, clock: Clock, deliver: Deliver, sweep: () => void, shards: Shards = ALL_SHARDS) {
    this.#store = store;
    this.#clock = clock;
    this.#deliver = deliver;
    this.#sweep = sweep;
    this.#shards = shards;
  }

  start(): void {
    this.#ticking = [
      this.#clock.every(TICK_INTERVAL_MS, () => void this.tick()),
      this.#clock.every(SWEEP_INTERVAL_MS, () => this.#sweep()),
    ];
  }

  stop(): void {
    for (const ticking of this.#ticking) ticking.cancel();
  }

  /** Delivers all due timers. Resolves when they have been handled. */
  async tick(): Promise<void> {
    const now = this.#clock.now();
    for (const [id, retryAt] of this.#retryAt) if (retryAt <= now) this.#retryAt.delete(id);
    try {
      for (let pages = 0; pages < MAX_PAGES; pages++) {
        const due = await this.#store.all(listOwnDueTimers({ now }, findOwnRows(this.#shards)));
        const ready = due.filter(({ id }) => !this.#running.has(id) && !this.#retryAt.has(id));
        await Promise.all(ready.map((timer) => this.#fire(timer)));
        if (due.length < MAX_DUE_TIMERS || ready.length === 0) return;
      }
    } catch (error) {
      log("scheduler").error("cannot read due timers: {error}", { error });
    }
  }

  /** Resolves when all messages being delivered have been handled. */
  async whenSettled(): Promise<void> {
    await Promise.all(this.#running.values());
  }

  #fire(timer: Timer): Promise<void> {
    const fired = this.#deliverTimer(timer).finally(() => this.#running.delete(timer.id));
    this.#running.set(timer.id, fired);
    return fired;
  }

  async #deliverTimer(timer: Timer): Promise<void> {
    try {
      await this.#deliver(timer);
    } catch (error) {
      this.#retryAt.set(timer.id, this.#clock.now() + RETRY_MS);
      log("scheduler").error("timer {id} failed: {error}", { id: timer.id, error });
    }
  }
}
