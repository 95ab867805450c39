// One-time challenges that continue an unfinished sign-in or enrollment. The state travels encrypted with the client, so that anonymous
// callers cannot fill memory; only used challenges are stored, until they would have expired. A restart invalidates all.
import type { Clock } from "#base/clock.ts";
import { toRfc3339 } from "#base/clock.ts";
import { type Encryption, UnsealError } from "#base/encryption.ts";
import { AppError } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";

const CHALLENGE_TTL_MS = 300_000;
/** Each one was spent by a user who had proven their identity. */
const MAX_SPENT = 20_000;

export type OfferedChallenge = { readonly challenge: string; readonly expires_at: string };

/** The content of a challenge, with what `spend` needs. */
export type OpenedChallenge<T> = { readonly id: string; readonly until: number; readonly data: T };

export class Challenges {
  readonly #clock: Clock;
  readonly #encryption: Encryption;
  readonly #epoch: number;
  readonly #spent = new Map<string, number>();

  /** `epoch` increases with each start. */
  constructor(clock: Clock, encryption: Encryption, epoch: number) {
    this.#clock = clock;
    this.#encryption = encryption;
    this.#epoch = epoch;
  }

  /** Creates a challenge that is valid for one purpose only. */
  offer(purpose: string, data: object, life_ms = CHALLENGE_TTL_MS): OfferedChallenge {
    const until = this.#clock.now() + life_ms;
    const state = JSON.stringify({ id: uuid(), until, data });
    return { challenge: this.#encryption.seal(state, this.#toSealContext(purpose)), expires_at: toRfc3339(until) };
  }

  /** Returns its content; undefined when it was not created here for this purpose, has expired, or was used. */
  open<T>(purpose: string, challenge: string): OpenedChallenge<T> | undefined {
    const opened = this.#unseal<T>(purpose, challenge);
    if (!opened || opened.until <= this.#clock.now() || this.#spent.has(opened.id)) return undefined;
    return opened;
  }

  /** Marks it as used. Returns false when it was already used; throws 503 when too many were used in the last minutes. */
  spend({ id, until }: OpenedChallenge<unknown>): boolean {
    if (this.#spent.has(id)) return false;
    const now = this.#clock.now();
    if (this.#spent.size >= MAX_SPENT)
      for (const [spentId, expiresAt] of this.#spent) if (expiresAt <= now) this.#spent.delete(spentId);
    if (this.#spent.size >= MAX_SPENT)
      throw new AppError("overloaded", "Too many people are signing in. Please retry.");
    this.#spent.set(id, until);
    return true;
  }

  /** Undoes a use that had no effect. */
  restore({ id }: OpenedChallenge<unknown>): void {
    this.#spent.delete(id);
  }

  #unseal<T>(purpose: string, challenge: string): OpenedChallenge<T> | undefined {
    try {
      return JSON.parse(this.#encryption.open(challenge, this.#toSealContext(purpose))) as OpenedChallenge<T>;
    } catch (error) {
      if (error instanceof UnsealError) return undefined;
      throw error;
    }
  }

  #toSealContext(purpose: string): string {
    return `challenge:${purpose}:${this.#epoch}`;
  }
}
