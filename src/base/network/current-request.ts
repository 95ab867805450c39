// The request that the current code runs for, when several nodes are active. Writes of a request are rejected once another node owns its
// rows (docs/spec/cluster-nodes.md). The request is known in its handler and in everything that the handler awaits; actors, and work that a
// handler does not await, have none. Neither has a single server.
import { AsyncLocalStorage } from "node:async_hooks";

const current = new AsyncLocalStorage<TrackedRequest | undefined>();

/** A request that is being handled. */
export class TrackedRequest {
  /** The shard of the rows that the request may write (src/base/shards.ts). */
  readonly part: number;
  readonly #onChange: () => void;
  #isOver = false;
  #hasBegun = false;
  /** Number of operations in progress that may still change something. */
  #openChanges = 0;
  #waitCount = 0;

  /** `onChange` is called when a handoff should check again whether it must wait for this request. */
  constructor(part: number, onChange: () => void = () => {}) {
    this.part = part;
    this.#onChange = onChange;
  }

  /** Returns whether the handler is running and not waiting for something else, such as the next owner of the rows. */
  get mayWrite(): boolean {
    return !this.#isOver && this.#waitCount === 0;
  }

  /** Returns whether the handler has ended, which can be later than the response. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Returns whether repeating the request could do something twice. */
  get hasBegun(): boolean {
    return this.#hasBegun || this.#openChanges > 0;
  }

  async run<T>(answer: () => Promise<T>): Promise<T> {
    try {
      return await current.run(this, answer);
    } finally {
      this.#isOver = true;
      this.#onChange();
    }
  }

  begin(): void {
    this.#hasBegun = true;
  }

  /** Tracks `work` as a change, unless it rejects with an error after which nothing has changed according to `isUnchanged`. */
  async trackChange<T>(work: Promise<T>, isUnchanged: (error: unknown) => boolean): Promise<T> {
    this.#openChanges++;
    try {
      const result = await work;
      this.#hasBegun = true;
      return result;
    } catch (error) {
      if (!isUnchanged(error)) this.#hasBegun = true;
      throw error;
    } finally {
      this.#openChanges--;
    }
  }

  async runWaiting<T>(work: () => Promise<T>): Promise<T> {
    this.#waitCount++;
    this.#onChange();
    try {
      return await work();
    } finally {
      this.#waitCount--;
    }
  }
}

/** Returns the request that the current code runs for; undefined outside a request and on a single server. */
export const getCurrentRequest = (): TrackedRequest | undefined => {
  const request = current.getStore();
  return request?.isOver ? undefined : request;
};

/**
 * Runs work that continues after the response or is shared with other requests, so that its writes are not rejected with those of the
 * request.
 */
export const runOutsideRequest = <T>(work: () => T): T =>
  current.getStore() === undefined ? work() : current.run(undefined, work);

/** Marks the request before a change outside the database, so that it is not repeated on another node. */
export const markSideEffect = (): void => getCurrentRequest()?.begin();

/** Runs work that waits for something else; a node that hands off the rows does not wait for the request in the meantime. */
export const runWhileWaiting = <T>(work: () => Promise<T>): Promise<T> =>
  getCurrentRequest()?.runWaiting(work) ?? work();
