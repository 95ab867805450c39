// How many model calls may be open, and how much their requests may weigh together: a request of 64 MiB stays in memory until its answer ends.
import type { Refusal } from "#src/llm/gateway/refusal.ts";

type Weight = { calls: number; bytes: number };
type Limits = { readonly calls: number; readonly bytes: number };

const MIB = 1024 * 1024;
const LIMITS: Limits = { calls: 2_000, bytes: 1024 * MIB };
const LIMITS_OF_USER: Limits = { calls: 100, bytes: 256 * MIB };
const TRY_AGAIN_S = 5;

const fits = ({ calls, bytes }: Weight, more: number, limits: Limits): boolean =>
  calls < limits.calls && bytes + more <= limits.bytes;

type OpenPlace = {
  /** Says what the request weighs, once it is read. */
  weigh(bytes: number): void;
  /** Gives the place back, once. */
  release(): void;
};

export class OpenCalls {
  readonly #all: Weight = { calls: 0, bytes: 0 };
  readonly #users = new Map<string, Weight>();

  /** Calls that are open. */
  get count(): number {
    return this.#all.calls;
  }

  /** Takes a place for a request of `bytes` at most, as long as the limits of its caller and of all allow it. */
  open(user_id: string, most: number): OpenPlace | Refusal {
    const own = this.#users.get(user_id) ?? { calls: 0, bytes: 0 };
    if (!fits(own, most, LIMITS_OF_USER) || !fits(this.#all, most, LIMITS)) {
      const message = "Too many model calls are in progress. Try again when one of them is done.";
      return { status: 429, code: "too_many_calls", message, retry_after: TRY_AGAIN_S };
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
      weigh: (bytes) => {
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
