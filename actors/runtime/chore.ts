// A periodic maintenance job: the server's sweep triggers it, and shutdown waits for it.
import type { Clock } from "#base/clock.ts";
import type { Parts } from "#base/parts.ts";

export interface Chore {
  /** Checks for work and does it in the background. */
  sweep(): void;
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
  /** In a cluster, only the first node runs the job. */
  readonly parts?: Pick<Parts, "isFirst"> | undefined;
  /** Called when a run fails. Later runs are not affected. */
  failed(error: unknown): void;
};

/** Runs a job periodically, one run at a time. */
export class PeriodicChore implements Chore {
  readonly #deps: PeriodicDeps;
  #last: number;
  #isStopped = false;
  #running: Promise<void> = Promise.resolve();

  constructor(deps: PeriodicDeps) {
    this.#deps = deps;
    this.#last = deps.clock.now();
  }

  sweep(): void {
    const { clock, every_ms } = this.#deps;
    const now = clock.now();
    if (this.#shouldStop() || now - this.#last < every_ms) return;
    this.#last = now;
    this.#running = this.#running.then(() => this.#run(now));
  }

  whenIdle(): Promise<void> {
    return this.#running;
  }

  stop(): Promise<void> {
    this.#isStopped = true;
    return this.#running;
  }

  #shouldStop(): boolean {
    return this.#isStopped || this.#deps.parts?.isFirst === false;
  }

  async #run(now: number): Promise<void> {
    try {
      await this.#deps.work(now, () => this.#shouldStop());
    } catch (error) {
      this.#deps.failed(error);
    }
  }
}
