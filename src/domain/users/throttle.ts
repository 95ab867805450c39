// Rate limit per key and minute, then 429 until the minute is over: for password guesses (rule ID-5) and API requests (OP-15). Bounded in
// memory.
import { isIP } from "node:net";
import type { Clock } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";

const MINUTE_MS = 60_000;
/** More keys than this in one minute are an attack; resetting the counts is better than growing. */
const MAX_KEYS = 50_000;

export class Throttle {
  readonly #clock: Clock;
  readonly #limit: number;
  #counts = new Map<string, number>();
  #minuteEnds = 0;
  /** Returns the count of a key on other nodes that share the limit. */
  others: (key: string) => number = () => 0;

  constructor(clock: Clock, limit: number) {
    this.#clock = clock;
    this.#limit = limit;
  }

  /** Returns the counts of this minute. */
  get counts(): ReadonlyMap<string, number> {
    return this.#counts;
  }

  /** Returns the milliseconds until the minute is over. */
  get left_ms(): number {
    return Math.max(0, this.#minuteEnds - this.#clock.monotonic());
  }

  /** Undoes a count of this minute, because the attempt was not a guess. */
  forgive(key: string): void {
    const tries = this.#counts.get(key) ?? 0;
    if (tries > 1) this.#counts.set(key, tries - 1);
    else this.#counts.delete(key);
  }

  /** Adds one and returns the count of this minute. */
  add(key: string): number {
    const now = this.#clock.monotonic();
    if (now >= this.#minuteEnds || this.#counts.size >= MAX_KEYS) {
      this.#counts = new Map();
      this.#minuteEnds = now + MINUTE_MS;
    }
    const tries = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, tries);
    return tries;
  }

  /** Counts one attempt. Throws 429 when there were too many in this minute. */
  count(key: string): void {
    if (this.add(key) + this.others(key) <= this.#limit) return;
    const retry_after = Math.ceil((this.#minuteEnds - this.#clock.monotonic()) / 1000);
    throw new AppError("too_many_requests", `Too many requests: at most ${this.#limit} a minute are answered.`, {
      detail: `Try again in ${retry_after} seconds.`,
      retry_after,
    });
  }
}

/** Returns the network of an IPv6 address, because its holder has 2^64 of them; any other address is returned unchanged. */
export const toNetwork = (address: string): string => {
  if (isIP(address) !== 6) return address;
  const [head = "", tail] = address.split("%")[0]?.split("::") ?? [];
  const groups = head === "" ? [] : head.split(":");
  const tailLength = tail ? tail.split(":").length : 0;
  if (tail !== undefined) while (groups.length < 8 - tailLength) groups.push("0");
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":")}::/64`;
};
