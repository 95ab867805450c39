// The memory for answers of other programs to one call of a tool. Most answers are small; the rest of a large one is read once the memory for
// it is available, and the other side waits (rule CH-54).
import type { Clock, Timer } from "../clock.ts";
import type { MemoryHold, MemoryShare } from "./memory-share.ts";

/** An answer up to this size is read without waiting. */
export const LARGE_ANSWER_BYTES = 1024 * 1024;
/** The largest answer that is read. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
/** A slower sender would keep memory from others. */
const MAX_READ_MS = 60_000;

/**
 * Resolves when the rest of a large answer can be read, with a function that says that it was. `onLate` is called if it was not after some
 * time.
 */
export type ReserveMemory = (onLate: () => void) => Promise<() => void>;

type Options = {
  readonly clock: Clock;
  readonly share: MemoryShare;
  /** The person for whom the tool is called. */
  readonly holder: string;
  readonly signal: AbortSignal;
};

export class AnswerMemory implements Disposable {
  readonly #options: Options;
  readonly #timers: Timer[] = [];
  #hold: Promise<MemoryHold> | undefined;
  #isOver = false;

  constructor(options: Options) {
    this.#options = options;
  }

  /** Whether a large answer has arrived. */
  get isReserved(): boolean {
    return this.#hold !== undefined;
  }

  /** Waits once: further answers of the same call use the same memory, because a call that waits for more would block others. */
  readonly reserve: ReserveMemory = async (onLate) => {
    const { clock, share, holder, signal } = this.#options;
    if (this.#isOver) return () => {};
    this.#hold ??= share.take(holder, MAX_ANSWER_BYTES, signal);
    await this.#hold;
    if (this.#isOver) return () => {};
    const timer = clock.after(MAX_READ_MS, onLate);
    this.#timers.push(timer);
    return () => timer.cancel();
  };

  /** Ends the call: nothing of its answers is in use anymore. */
  [Symbol.dispose](): void {
    this.#isOver = true;
    for (const timer of this.#timers) timer.cancel();
    void this.#hold?.then(
      (hold) => hold.release(),
      () => {},
    );
  }
}
