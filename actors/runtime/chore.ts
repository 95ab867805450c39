// What a server does alongside its work, now and then: its sweep calls it, its end waits for it.
import type { Clock } from "#base/clock.ts";
import type { Parts } from "#base/parts.ts";

export interface Chore {
  /** Looks whether there is something to do, and does it outside of the caller's turn. */
  sweep(): void;
  /** Resolves when nothing of it runs. */
  idle(): Promise<void>;
  /** Resolves when what runs has ended; nothing is begun any more. */
  stop(): Promise<void>;
}

export type PeriodicDeps = {
  readonly clock: Pick<Clock, "now">;
  /** At most once in this time, and not before it has passed since the start. */
  readonly every_ms: number;
  /** Given the present time; ends early when `isStopped` says so. */
  work(now: number, isStopped: () => boolean): Promise<void>;
  /** Of several nodes only the first one does it. */
  readonly parts?: Pick<Parts, "isFirst"> | undefined;
  /** Told why it has failed; the next time comes all the same. */
  failed(error: unknown): void;
};

/** A chore that is done again and again, one time after the other. */
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
    if (this.#rests() || now - this.#last < every_ms) return;
    this.#last = now;
    this.#running = this.#running.then(() => this.#run(now));
  }

  idle(): Promise<void> {
    return this.#running;
  }

  stop(): Promise<void> {
    this.#isStopped = true;
    return this.#running;
  }

  #rests(): boolean {
    return this.#isStopped || this.#deps.parts?.isFirst === false;
  }

  async #run(now: number): Promise<void> {
    try {
      await this.#deps.work(now, () => this.#rests());
    } catch (error) {
      this.#deps.failed(error);
    }
  }
}
