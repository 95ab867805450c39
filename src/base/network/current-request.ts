// The request that a piece of work is done for, when several nodes are active: its writes are rejected once another node owns its rows
// (docs/spec/cluster-nodes.md). It propagates automatically from the request through its handler and ends there; actors, and work
// that a handler does not await, do not inherit it. A single server has none.
import { AsyncLocalStorage } from "node:async_hooks";

const current = new AsyncLocalStorage<TrackedRequest | undefined>();

/** A request that is being handled. */
export class TrackedRequest {
  /** The `part` of the rows it may write (src/base/shards.ts). */
  readonly part: number;
  readonly #changed: () => void;
  #isOver = false;
  #hasBegun = false;
  /** Number of operations in progress that may still change something. */
  #open = 0;
  #waitCount = 0;

  /** `changed` is called when a handoff should check again whether it must wait for this request. */
  constructor(part: number, changed: () => void = () => {}) {
    this.part = part;
    this.#changed = changed;
  }

  /** Returns whether its handler is still running and not waiting for something else, such as the next owner of its rows. */
  get mayWrite(): boolean {
    return !this.#isOver && this.#waitCount === 0;
  }

  /** Returns whether its handler has ended, even if it was answered earlier. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Returns whether repeating the request could do something twice. */
  get hasBegun(): boolean {
    return this.#hasBegun || this.#open > 0;
  }

  async run<T>(answer: () => Promise<T>): Promise<T> {
    try {
      return await current.run(this, answer);
    } finally {
      this.#isOver = true;
      this.#changed();
    }
  }

  begin(): void {
    this.#hasBegun = true;
  }

  /** Tracks `work` as a change, unless it rejects with an error for which `isNothing` says that nothing has changed. */
  async trackChange<T>(work: Promise<T>, isNothing: (error: unknown) => boolean): Promise<T> {
    this.#open++;
    try {
      const done = await work;
      this.#hasBegun = true;
      return done;
    } catch (error) {
      if (!isNothing(error)) this.#hasBegun = true;
      throw error;
    } finally {
      this.#open--;
    }
  }

  async runWaiting<T>(work: () => Promise<T>): Promise<T> {
    this.#waitCount++;
    this.#changed();
    try {
      return await work();
    } finally {
      this.#waitCount--;
    }
  }
}

/** Returns the request that the current code runs for; undefined outside a request and on a single server. */
export const getCurrentRequest = (): TrackedRequest | undefined => {
  const now = current.getStore();
  return now?.isOver ? undefined : now;
};

/** Runs work that continues after the response or is shared with other requests, so that it is not rejected with the request. */
export const runOutsideRequest = <T>(work: () => T): T =>
  current.getStore() === undefined ? work() : current.run(undefined, work);

/** Marks the request before a change outside the database, so that it is not repeated on another node. */
export const markSideEffect = (): void => getCurrentRequest()?.begin();

/** Runs work that waits for something else; a node that hands off the rows does not wait for the request in the meantime. */
export const runWhileWaiting = <T>(work: () => Promise<T>): Promise<T> =>
  getCurrentRequest()?.runWaiting(work) ?? work();
