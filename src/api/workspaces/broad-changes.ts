// Changes that many watched workspaces show at once: one of a template, of a name, of the queue of jobs. They are looked at again one
// each turn of the event loop, alongside and not before the workspaces that changed on their own (rule WK-29).
import type { Clock } from "#base/clock.ts";

type Looked = { look(): void };

/** How often those that wait in the queue of jobs are looked at, milliseconds, for each hundred of them. */
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

  /** Each is looked at once, soon; one that is due already is not due twice. */
  look(those: Iterable<Looked>): void {
    for (const one of those) this.#due.add(one);
    if (this.#running || this.#due.size === 0) return;
    this.#running = true;
    setImmediate(() => this.#next());
  }

  /** Whether it shows a place in the queue, or workers that come and go. */
  setQueued(one: Looked, isQueued: boolean): void {
    if (isQueued) this.#queued.add(one);
    else this.#queued.delete(one);
  }

  /** The queue has moved. Places change with every job, so all who show one are looked at together, a second later or more. */
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
