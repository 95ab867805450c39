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
  #isScheduled = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Schedules each workspace to be refreshed once, soon; one that is already scheduled is not scheduled again. */
  refresh(workspaces: Iterable<Refreshable>): void {
    for (const workspace of workspaces) this.#due.add(workspace);
    if (this.#isRunning || this.#due.size === 0) return;
    this.#isRunning = true;
    setImmediate(() => this.#refreshNext());
  }

  /** Sets whether the workspace shows a queue position or the workers' state. */
  setQueued(workspace: Refreshable, isQueued: boolean): void {
    if (isQueued) this.#queued.add(workspace);
    else this.#queued.delete(workspace);
  }

  /**
   * Called when the queue has changed. Every job changes the positions, so all queued workspaces are refreshed together, a second later or
   * more.
   */
  onQueueChanged(): void {
    if (this.#isScheduled || this.#queued.size === 0) return;
    this.#isScheduled = true;
    this.#clock.after(QUEUE_INTERVAL_MS * Math.ceil(this.#queued.size / HUNDRED), () => {
      this.#isScheduled = false;
      this.refresh(this.#queued);
    });
  }

  remove(workspace: Refreshable): void {
    this.#due.delete(workspace);
    this.#queued.delete(workspace);
  }

  #refreshNext(): void {
    const [next] = this.#due;
    if (!next) {
      this.#isRunning = false;
      return;
    }
    this.#due.delete(next);
    setImmediate(() => this.#refreshNext());
    next.refresh();
  }
}
