// Limits the number of open model calls, and takes the memory for their requests: a request of up to 64 MiB stays in memory until its response
// ends, as bytes, as a value, and as what is sent to the provider.
import type { Clock } from "#base/clock.ts";
import type { MemoryHold, MemoryShare } from "#base/system/memory-share.ts";
import type { Refusal } from "#src/llm/gateway/refusal.ts";

const MAX_CALLS = 2_000;
const MAX_USER_CALLS = 100;
/** A request without memory after this time is refused. Its body waits at its caller. */
const MAX_WAIT_MS = 10_000;
const RETRY_AFTER_S = 5;

const REFUSAL: Refusal = {
  status: 429,
  code: "too_many_calls",
  message: "Too many model calls are in progress. Try again when one of them is done.",
  retry_after: RETRY_AFTER_S,
};

type OpenSlot = {
  /** Sets the actual size of the request once it has been read. */
  setBodySize(bytes: number): void;
  /** Releases the slot, once. */
  release(): void;
};

export class OpenCalls {
  readonly #clock: Clock;
  readonly #memory: MemoryShare;
  readonly #users = new Map<string, number>();
  /** Number of open calls. */
  count = 0;

  /** `memory`: the share that chats use, too. */
  constructor(clock: Clock, memory: MemoryShare) {
    this.#clock = clock;
    this.#memory = memory;
  }

  /**
   * Takes a slot for a request of at most `most` bytes, and waits some time for its memory. Refuses if the limits of the caller or of the
   * server do not allow it.
   */
  async open(user_id: string, most: number, signal: AbortSignal): Promise<OpenSlot | Refusal> {
    if (this.count >= MAX_CALLS || this.#countOf(user_id) >= MAX_USER_CALLS) return REFUSAL;
    this.#add(user_id, 1);
    const memory = await this.#takeMemory(user_id, most, signal);
    if (!memory) {
      this.#add(user_id, -1);
      return REFUSAL;
    }
    let isReleased = false;
    return {
      setBodySize: (bytes) => memory.resize(bytes),
      release: () => {
        if (isReleased) return;
        isReleased = true;
        memory.release();
        this.#add(user_id, -1);
      },
    };
  }

  async #takeMemory(user_id: string, most: number, signal: AbortSignal): Promise<MemoryHold | undefined> {
    const late = new AbortController();
    const timer = this.#clock.after(MAX_WAIT_MS, () => late.abort());
    try {
      return await this.#memory.take(user_id, most, AbortSignal.any([signal, late.signal]));
    } catch {
      // Its caller has left, or has waited for too long.
      return undefined;
    } finally {
      timer.cancel();
    }
  }

  #countOf(user_id: string): number {
    return this.#users.get(user_id) ?? 0;
  }

  #add(user_id: string, by: 1 | -1): void {
    this.count += by;
    const count = this.#countOf(user_id) + by;
    if (count === 0) this.#users.delete(user_id);
    else this.#users.set(user_id, count);
  }
}
