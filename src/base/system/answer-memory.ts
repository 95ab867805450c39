// The memory for answers of other programs to one call of a tool. Most answers are small. The rest of a large answer is read when memory is
// available for it; until then, the other program waits (rule CH-54).
import type { Clock, Timer } from "../clock.ts";
import type { MemoryHold, MemoryShare } from "./memory-share.ts";

/** An answer up to this size is read without waiting. */
export const LARGE_ANSWER_BYTES = 1024 * 1024;
/** The largest answer that is read. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
/** Maximum time to read a large answer. A slower sender would keep memory from other calls. */
const MAX_READ_MS = 60_000;

/**
 * Resolves when the rest of a large answer can be read, with a function to call when it has been read. `onLate` is called if it takes too
 * long.
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

  /** Releases the memory when the call has ended and its answers are not in use anymore. */
  [Symbol.dispose](): void {
    this.#isOver = true;
    for (const timer of this.#timers) timer.cancel();
    void this.#hold?.then(
      (hold) => hold.release(),
      () => {},
    );
  }
}
