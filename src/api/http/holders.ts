// Who holds how many of the connections that stay open: so many in all, three quarters of them by one caller (rule SK-2). Used for
// WebSockets and for event streams, each with a count of its own.
import { AppError } from "#base/errors.ts";

const SHARE = 0.75;

export class Holders {
  readonly #limit: number;
  readonly #heldBy = new Map<string, number>();
  #all = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Throws 503 when one more is too many, for the server or for this caller. */
  check(who: string | undefined): void {
    if (this.#all >= this.#limit) throw new AppError("overloaded", "The server has too many open connections.");
    if (who !== undefined && (this.#heldBy.get(who) ?? 0) >= Math.ceil(this.#limit * SHARE)) {
      throw new AppError("overloaded", "You have too many open connections.");
    }
  }

  /** One more, or one less. */
  count(who: string | undefined, by: 1 | -1): void {
    this.#all += by;
    if (who === undefined) return;
    const held = (this.#heldBy.get(who) ?? 0) + by;
    if (held > 0) this.#heldBy.set(who, held);
    else this.#heldBy.delete(who);
  }
}
