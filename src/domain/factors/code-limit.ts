// Limits wrong codes per account: after five, each further attempt has to wait, from a minute up to an hour. Only a user who is signed in
// or has proven the password gets this far, so others cannot lock them out. A correct code resets the limit.
import type { Clock } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";

const FREE = 5;
const FIRST_MS = 60_000;
const MAX_WAIT_MS = 3_600_000;
const MAX_ACCOUNTS = 10_000;

type Tries = { count: number; until: number };

export class CodeLimit {
  readonly #clock: Clock;
  readonly #tries = new Map<string, Tries>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Counts an attempt as wrong until `forgive` is called, so that concurrent attempts are all counted. Rejects with 429 while the account
   * has to wait.
   */
  count(user_id: string): void {
    const now = this.#clock.monotonic();
    const { count, until } = this.#tries.get(user_id) ?? { count: 0, until: 0 };
    if (now < until) {
      const retry_after = Math.ceil((until - now) / 1000);
      throw new AppError("too_many_requests", "Too many wrong codes for this account.", {
        detail: `Try again in ${retry_after} seconds.`,
        retry_after,
      });
    }
    const wait = count + 1 < FREE ? 0 : Math.min(FIRST_MS * 2 ** (count + 1 - FREE), MAX_WAIT_MS);
    this.#tries.delete(user_id);
    this.#tries.set(user_id, { count: Math.min(count + 1, 100), until: now + wait });
    const oldest = this.#tries.size > MAX_ACCOUNTS ? this.#tries.keys().next().value : undefined;
    if (oldest !== undefined) this.#tries.delete(oldest);
  }

  forgive(user_id: string): void {
    this.#tries.delete(user_id);
  }
}
