// The parts that users' routes share for the life of the process: hashing, the setup link, and counts of sign-in tries.
import type { Clock } from "#base/clock.ts";
import { SetupLink } from "./first-user.ts";
import { Passwords } from "./passwords.ts";
import { networkOf, Throttle } from "./throttle.ts";

/** Sign-ins and password changes of one address for one account in a minute (facts/platform 3.1). */
const TRIES = 60;
/**
 * Wrong passwords of one address for all accounts together in a minute. Only wrong ones, and twice as many as for one account: people
 * share addresses, and one who guesses there must not lock the others out.
 */
const WRONG = 2 * TRIES;

export class Accounts {
  readonly passwords = new Passwords();
  readonly setup: SetupLink;
  readonly #tries: Throttle;
  readonly #wrong: Throttle;
  /** True while the first user is still to be made through the setup link. */
  setupNeeded = false;

  constructor(clock: Clock) {
    this.setup = new SetupLink(clock);
    this.#tries = new Throttle(clock, TRIES);
    this.#wrong = new Throttle(clock, WRONG);
  }

  /**
   * Counts what may be a guess at a password; call it before any work, and what it returns when the password was right. Throws 429 when
   * there were too many in this minute (rule ID-5).
   */
  countGuess(address: string, email: string): () => void {
    const network = networkOf(address);
    const takeBack = (): void => this.#wrong.forgive(network);
    this.#wrong.count(network);
    try {
      this.#tries.count(`${address} ${email.toLowerCase()}`);
    } catch (error) {
      takeBack();
      throw error;
    }
    return takeBack;
  }
}
