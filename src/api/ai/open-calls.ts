// Limits the number of open model calls and the total size of their requests: a request of up to 64 MiB stays in memory until its response
// ends, as bytes, as a value, and as what is sent to the provider.
import { shareOfMemory } from "#base/system/memory.ts";
import type { Refusal } from "#src/llm/gateway/refusal.ts";

type Weight = { calls: number; bytes: number };
type Limits = { readonly calls: number; readonly bytes: number };

const MIB = 1024 * 1024;
/** The largest request always fits, and next to it one of another person. */
const MIN_BYTES = 64 * MIB;
const MAX_BYTES = Math.max(2 * MIN_BYTES, Math.min(shareOfMemory(1 / 8), 1024 * MIB));
const LIMITS: Limits = { calls: 2_000, bytes: MAX_BYTES };
const USER_LIMITS: Limits = { calls: 100, bytes: Math.max(MIN_BYTES, Math.min(MAX_BYTES / 2, 256 * MIB)) };
const RETRY_AFTER_S = 5;

const hasRoom = ({ calls, bytes }: Weight, more: number, limits: Limits): boolean =>
  calls < limits.calls && bytes + more <= limits.bytes;

type OpenSlot = {
  /** Sets the actual size of the request once it has been read. */
  setBodySize(bytes: number): void;
  /** Releases the slot, once. */
  release(): void;
};

export class OpenCalls {
  readonly #all: Weight = { calls: 0, bytes: 0 };
  readonly #users = new Map<string, Weight>();

  /** Returns the number of open calls. */
  get count(): number {
    return this.#all.calls;
  }

  /** Takes a slot for a request of at most `most` bytes, if the limits of the caller and of the server allow it. */
  open(user_id: string, most: number): OpenSlot | Refusal {
    const own = this.#users.get(user_id) ?? { calls: 0, bytes: 0 };
    if (!hasRoom(own, most, USER_LIMITS) || !hasRoom(this.#all, most, LIMITS)) {
      const message = "Too many model calls are in progress. Try again when one of them is done.";
      return { status: 429, code: "too_many_calls", message, retry_after: RETRY_AFTER_S };
    }
    this.#users.set(user_id, own);
    let held = 0;
    const add = (calls: number, bytes: number): void => {
      held += bytes;
      for (const one of [own, this.#all]) {
        one.calls += calls;
        one.bytes += bytes;
      }
    };
    add(1, most);
    let isReleased = false;
    return {
      setBodySize: (bytes) => {
        if (!isReleased) add(0, bytes - held);
      },
      release: () => {
        if (isReleased) return;
        isReleased = true;
        add(-1, -held);
        if (own.calls === 0) this.#users.delete(user_id);
      },
    };
  }
}
