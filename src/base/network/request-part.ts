// The part of the request for which a piece of work is done, where several nodes are active: what it writes is refused once another node has the
// part (docs/spec/cluster-nodes.md). It goes along on its own from the request through its handler, and ends with that: neither actors nor what a handler
// has begun and does not wait for have it. One server has none.
import { AsyncLocalStorage } from "node:async_hooks";

const current = new AsyncLocalStorage<PartedRequest | undefined>();

/** One request while it is answered. */
export class PartedRequest {
  readonly part: number;
  readonly #changed: () => void;
  #isOver = false;
  #hasBegun = false;
  /** What may change something still. */
  #open = 0;
  #waits = 0;

  /** `changed` is called when a hand-over may have to look again whether it waits for this request. */
  constructor(part: number, changed: () => void = () => {}) {
    this.part = part;
    this.#changed = changed;
  }

  /** Its handler continues, and does not wait for someone else, such as the node that gets its part. */
  get mayWrite(): boolean {
    return !this.#isOver && this.#waits === 0;
  }

  /** Its handler has ended, also when it was answered before. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Whether asking for it again could do something twice. */
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

  /** `work` changes something, unless it rejects with what `isNothing` knows to have changed nothing. */
  async changing<T>(work: Promise<T>, isNothing: (error: unknown) => boolean): Promise<T> {
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

  async whileWaiting<T>(work: () => Promise<T>): Promise<T> {
    this.#waits++;
    this.#changed();
    try {
      return await work();
    } finally {
      this.#waits--;
    }
  }
}

/** The request that is answered by what runs now; undefined outside of one, and where there is one server. */
export const requestNow = (): PartedRequest | undefined => {
  const now = current.getStore();
  return now?.isOver ? undefined : now;
};

/** For work that continues after the response, or is shared with other requests: it is not refused with the request. */
export const besideRequest = <T>(work: () => T): T =>
  current.getStore() === undefined ? work() : current.run(undefined, work);

/** Something outside of the database is about to change: the request is asked of no other node any more. */
export const beginOutside = (): void => requestNow()?.begin();

/** The request waits for someone else: a node that hands its part over does not wait for it. */
export const waitingForOthers = <T>(work: () => Promise<T>): Promise<T> => requestNow()?.whileWaiting(work) ?? work();
