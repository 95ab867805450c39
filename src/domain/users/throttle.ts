// So many calls a minute for each key, then 429 until the minute is over: for guesses at passwords (rule ID-5) and for calls of the API
// (OP-15). Bounded in memory.
import { isIP } from "node:net";
import type { Clock } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";

const MINUTE_MS = 60_000;
/** More keys than this in one minute are an attack; forgetting the counts is better than growing. */
const MAX_KEYS = 50_000;

export class Throttle {
  readonly #clock: Clock;
  readonly #limit: number;
  #counts = new Map<string, number>();
  #minuteEnds = 0;
  /** How often others have counted a key, who share the limit: other nodes. */
  others: (key: string) => number = () => 0;

  constructor(clock: Clock, limit: number) {
    this.#clock = clock;
    this.#limit = limit;
  }

  /** Of this minute. */
  get counts(): ReadonlyMap<string, number> {
    return this.#counts;
  }

  /** Milliseconds until the minute is over. */
  get left_ms(): number {
    return Math.max(0, this.#minuteEnds - this.#clock.monotonic());
  }

  /** Takes back a try of this minute that turned out to be no guess. */
  forgive(key: string): void {
    const tries = this.#counts.get(key) ?? 0;
    if (tries > 1) this.#counts.set(key, tries - 1);
    else this.#counts.delete(key);
  }

  /** Counts one more, and says how many there were in this minute. */
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

  /** Counts one try; 429 when there were too many in this minute. */
  count(key: string): void {
    if (this.add(key) + this.others(key) <= this.#limit) return;
    const retry_after = Math.ceil((this.#minuteEnds - this.#clock.monotonic()) / 1000);
    throw new AppError("too_many_requests", `Too many requests: at most ${this.#limit} a minute are answered.`, {
      detail: `Try again in ${retry_after} seconds.`,
      retry_after,
    });
  }
}

/** Who has an IPv6 address has 2^64 of them: the network stands for all. Other addresses stand for themselves. */
export const toNetwork = (address: string): string => {
  if (isIP(address) !== 6) return address;
  const [head = "", tail] = address.split("%")[0]?.split("::") ?? [];
  const groups = head === "" ? [] : head.split(":");
  const rest = tail ? tail.split(":").length : 0;
  if (tail !== undefined) while (groups.length < 8 - rest) groups.push("0");
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":")}::/64`;
};
