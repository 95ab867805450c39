// A periodic maintenance job: the server's sweep triggers it, and shutdown waits for it.
import type { Clock } from "#base/clock.ts";
import type { Service } from "./service.ts";

export interface Chore extends Service {
  /** Checks for work and does it in the background. A run ends early when `mayContinue` returns false. */
  sweep(mayContinue?: () => boolean): void;
  /** Resolves when the job is not running. */
  whenIdle(): Promise<void>;
  /** Resolves when a running job has ended. No further run begins. */
  stop(): Promise<void>;
}

export type PeriodicDeps = {
  readonly clock: Pick<Clock, "now">;
  /** Minimum time between runs, and between the server's start and the first run. */
  readonly every_ms: number;
  /** Runs the job. Returns early when `isStopped` returns true. */
  work(now: number, isStopped: () => boolean): Promise<void>;
  /** Called when a run fails. Later runs are not affected. */
  failed(error: unknown): void;
};

/** Runs a job periodically, one run at a time. */
export class PeriodicChore implements Chore {
  readonly runsOn = "one node";
  readonly #deps: PeriodicDeps;
  #last: number;
  #isStopped = false;
  #running: Promise<void> = Promise.resolve();

  constructor(deps: PeriodicDeps) {
    this.#deps = deps;
    this.#last = deps.clock.now();
  }

  sweep(mayContinue: () => boolean = () => true): void {
    const { clock, every_ms } = this.#deps;
    const now = clock.now();
    if (this.#isStopped || now - this.#last < every_ms) return;
    this.#last = now;
    this.#running = this.#running.then(() => this.#run(now, () => this.#isStopped || !mayContinue()));
  }

  whenIdle(): Promise<void> {
    return this.#running;
  }

  stop(): Promise<void> {
    this.#isStopped = true;
    return this.#running;
  }

  async #run(now: number, isStopped: () => boolean): Promise<void> {
    try {
      await this.#deps.work(now, isStopped);
    } catch (error) {
      this.#deps.failed(error);
    }
  }
}
