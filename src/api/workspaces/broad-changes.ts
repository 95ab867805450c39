// Refreshes watched workspaces after changes that affect many of them: a template, a name, or the job queue. Each turn of the event loop
// refreshes only one of them, so that they do not delay workspaces that changed themselves (rule WK-29).
import type { Clock } from "#base/clock.ts";

type Refreshable = { refresh(): void };

/** Minimum milliseconds between refreshes of queued workspaces, for each hundred of them. */
const QUEUE_INTERVAL_MS_PER_HUNDRED = 1_000;

export class BroadChanges {
  readonly #clock: Clock;
  readonly #due = new Set<Refreshable>();
  readonly #queued = new Set<Refreshable>();
  #isRunning = false;
  #isQueueRefreshScheduled = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Schedules a refresh of each workspace that does not have one scheduled. */
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

  /** Refreshes all queued workspaces together after a delay, because each job changes the positions of many of them. */
  onQueueChanged(): void {
    if (this.#isQueueRefreshScheduled || this.#queued.size === 0) return;
    this.#isQueueRefreshScheduled = true;
    this.#clock.after(QUEUE_INTERVAL_MS_PER_HUNDRED * Math.ceil(this.#queued.size / 100), () => {
      this.#isQueueRefreshScheduled = false;
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
