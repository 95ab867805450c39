// Limits the number of open model calls, and reserves the memory for their requests. A request stays in memory until its response begins: as
// received bytes, as a parsed value, and as the bytes sent to the provider.
import type { Clock } from "#base/clock.ts";
import type { MemoryHold, MemoryShare } from "#base/system/memory-share.ts";
import type { Refusal } from "#src/llm/gateway/refusal.ts";

const MAX_CALLS = 2_000;
const MAX_USER_CALLS = 100;
/** A request that gets no memory within this time is refused. Its body is not read before. */
const MAX_WAIT_MS = 10_000;
const RETRY_AFTER_S = 5;
/**
 * Maximum memory for reading and parsing a request, as a multiple of its bytes. A text with any character beyond Latin-1 takes two bytes
 * per character, once as text and once as parsed values, and parsing leaves garbage.
 */
const READ_FACTOR = 8;
/** Memory that stays in use until the response, as a multiple of the bytes: the bytes, the parsed values, and the copy that is sent. */
const KEPT_FACTOR = 4;

const REFUSAL: Refusal = {
  status: 429,
  code: "too_many_calls",
  message: "Too many model calls are in progress. Try again when one of them is done.",
  retry_after: RETRY_AFTER_S,
};

type OpenSlot = {
  /** Sets the actual size of the request once it has been parsed. */
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

  /** `memory`: the same share that chats use. */
  constructor(clock: Clock, memory: MemoryShare) {
    this.#clock = clock;
    this.#memory = memory;
  }

  /**
   * Takes a slot for a request of at most `maxBytes`, and waits for its memory. Refuses if the caller or the server has reached a limit.
   */
  async open(user_id: string, maxBytes: number, signal: AbortSignal): Promise<OpenSlot | Refusal> {
    if (this.count >= MAX_CALLS || this.#countCalls(user_id) >= MAX_USER_CALLS) return REFUSAL;
    this.#add(user_id, 1);
    const memory = await this.#takeMemory(user_id, READ_FACTOR * maxBytes, signal);
    if (!memory) {
      this.#add(user_id, -1);
      return REFUSAL;
    }
    let isReleased = false;
    return {
      setBodySize: (bytes) => memory.resize(KEPT_FACTOR * bytes),
      release: () => {
        if (isReleased) return;
        isReleased = true;
        memory.release();
        this.#add(user_id, -1);
      },
    };
  }

  async #takeMemory(user_id: string, bytes: number, signal: AbortSignal): Promise<MemoryHold | undefined> {
    const timeout = new AbortController();
    const timer = this.#clock.after(MAX_WAIT_MS, () => timeout.abort());
    try {
      return await this.#memory.take(user_id, bytes, AbortSignal.any([signal, timeout.signal]));
    } catch {
      // The caller has disconnected, or the wait took too long.
      return undefined;
    } finally {
      timer.cancel();
    }
  }

  #countCalls(user_id: string): number {
    return this.#users.get(user_id) ?? 0;
  }

  #add(user_id: string, change: 1 | -1): void {
    this.count += change;
    const count = this.#countCalls(user_id) + change;
    if (count === 0) this.#users.delete(user_id);
    else this.#users.set(user_id, count);
  }
}
