// Limits the number of long-lived connections: a total, of which one caller may have three quarters (rule SK-2). WebSockets and event
// streams are counted separately.
import { AppError } from "#base/errors.ts";

const SHARE = 0.75;

export class ConnectionLimits {
  readonly #limit: number;
  readonly #refusal: string | undefined;
  readonly #heldBy = new Map<string, number>();
  #all = 0;

  /** `refusal`: the message of the error, instead of one about open connections. */
  constructor(limit: number, refusal?: string) {
    this.#limit = limit;
    this.#refusal = refusal;
  }

  /** Throws 503 when one more would exceed the server's or the caller's limit, which may be lower than three quarters: `most`. */
  check(who: string | undefined, most = Math.ceil(this.#limit * SHARE)): void {
    if (this.#all >= this.#limit)
      throw new AppError("overloaded", this.#refusal ?? "The server has too many open connections.");
    if (who !== undefined && (this.#heldBy.get(who) ?? 0) >= most) {
      throw new AppError("overloaded", this.#refusal ?? "You have too many open connections.");
    }
  }

  /** Adds or removes one with its holders. */
  count(holders: readonly (string | undefined)[], by: 1 | -1): void {
    this.#all += by;
    for (const who of holders) {
      if (who === undefined) continue;
      const held = (this.#heldBy.get(who) ?? 0) + by;
      if (held > 0) this.#heldBy.set(who, held);
      else this.#heldBy.delete(who);
    }
  }
}
