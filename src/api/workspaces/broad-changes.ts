// Refreshes watched workspaces after changes that affect many of them: a template, a name, or the job queue. One is refreshed per turn of
// the event loop, next to workspaces that changed themselves (rule WK-29).
import type { Clock } from "#base/clock.ts";

type Looked = { look(): void };

/** Minimum milliseconds between refreshes of queued workspaces, per hundred of them. */
const QUEUE_MS = 1_000;
const HUNDRED = 100;

export class BroadChanges {
  readonly #clock: Clock;
  readonly #due = new Set<Looked>();
  readonly #queued = new Set<Looked>();
  #running = false;
  #armed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Schedules each workspace to be refreshed once, soon; one that is already scheduled stays scheduled once. */
  look(those: Iterable<Looked>): void {
    for (const one of those) this.#due.add(one);
    if (this.#running || this.#due.size === 0) return;
    this.#running = true;
    setImmediate(() => this.#next());
  }

  /** Sets whether the workspace shows a queue position or the workers' state. */
  setQueued(one: Looked, isQueued: boolean): void {
    if (isQueued) this.#queued.add(one);
    else this.#queued.delete(one);
  }

  /**
   * Called when the queue has changed. Every job changes the positions, so all queued workspaces are refreshed together, a second later or
   * more.
   */
  queueMoved(): void {
    if (this.#armed || this.#queued.size === 0) return;
    this.#armed = true;
    this.#clock.after(QUEUE_MS * Math.ceil(this.#queued.size / HUNDRED), () => {
      this.#armed = false;
      this.look(this.#queued);
    });
  }

  forget(one: Looked): void {
    this.#due.delete(one);
    this.#queued.delete(one);
  }

  #next(): void {
    const [first] = this.#due;
    if (!first) {
      this.#running = false;
      return;
    }
    this.#due.delete(first);
    setImmediate(() => this.#next());
    first.look();
  }
}
