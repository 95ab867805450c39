// Refreshes watched workspaces after changes that affect many of them: a template, a name, or the job queue. One is refreshed per turn of
// the event loop, next to workspaces that changed themselves (rule WK-29).
import type { Clock } from "#base/clock.ts";

type Refreshable = { refresh(): void };

/** Minimum milliseconds between refreshes of queued workspaces, per hundred of them. */
const QUEUE_INTERVAL_MS = 1_000;
const HUNDRED = 100;

export class BroadChanges {
  readonly #clock: Clock;
  readonly #due = new Set<Refreshable>();
  readonly #queued = new Set<Refreshable>();
  #isRunning = false;
  #isArmed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Schedules each workspace to be refreshed once, soon; one that is already scheduled is not scheduled again. */
  refresh(those: Iterable<Refreshable>): void {
    for (const one of those) this.#due.add(one);
    if (this.#isRunning || this.#due.size === 0) return;
    this.#isRunning = true;
    setImmediate(() => this.#refreshNext());
  }

  /** Sets whether the workspace shows a queue position or the workers' state. */
  setQueued(one: Refreshable, isQueued: boolean): void {
    if (isQueued) this.#queued.add(one);
    else this.#queued.delete(one);
  }

  /**
   * Called when the queue has changed. Every job changes the positions, so all queued workspaces are refreshed together, a second later or
   * more.
   */
  queueMoved(): void {
    if (this.#isArmed || this.#queued.size === 0) return;
    this.#isArmed = true;
    this.#clock.after(QUEUE_INTERVAL_MS * Math.ceil(this.#queued.size / HUNDRED), () => {
      this.#isArmed = false;
      this.refresh(this.#queued);
    });
  }

  remove(one: Refreshable): void {
    this.#due.delete(one);
    this.#queued.delete(one);
  }

  #refreshNext(): void {
    const [first] = this.#due;
    if (!first) {
      this.#isRunning = false;
      return;
    }
    this.#due.delete(first);
    setImmediate(() => this.#refreshNext());
    first.refresh();
  }
}
