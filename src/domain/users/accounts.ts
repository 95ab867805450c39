// The services that users' routes share for the life of the process: hashing, the setup link, and counts of sign-in tries.

import type { Clock } from "#base/clock.ts";
import { emailKey } from "#base/email-address.ts";
import type { Encryption } from "#base/encryption.ts";
import { pause } from "#base/retry.ts";
import type { Store } from "#db/engine/store.ts";
import { SecondFactors } from "../factors/second-factors.ts";
import { Guesses } from "./guesses.ts";
import { type HashCost, Passwords } from "./passwords.ts";
import { SetupLink } from "./setup-link.ts";
import { Throttle, toNetwork } from "./throttle.ts";

/** Sign-ins and password changes of one address for one account in a minute (facts/platform 3.1). */
const TRIES = 60;
/**
 * Wrong passwords of one address for all accounts together in a minute. Only wrong ones, and twice as many as for one account: people
 * share addresses, and one who guesses there must not lock the others out.
 */
const WRONG = 2 * TRIES;
/** A wrong password is answered by so much later for each request that waits to be hashed: a flood that waits for answers slows down. */
const PRESSURE_MS = 500;
const LATEST_MS = 5_000;
/** Answers that are held back immediately. */
const HELD = 10_000;

/** Who guesses, at what. */
export type Guesser = {
  /** The address of the request. */
  readonly address: string;
  /** The account's email address as it was sent, whether there is such an account or not. */
  readonly account: string;
  /** Has signed in to this account from this address before, or is signed in to it: no one else's guesses count for them. */
  readonly isKnown: boolean;
};

export type Guess = {
  /** Whether the password is right. A wrong one is answered after a while, the same for accounts that are and that are not. */
  verify(password: string, hash: string | undefined): Promise<boolean>;
  /** It was no guess. */
  right(): void;
  /** It was wrong: resolves when that may be answered. */
  wrong(): Promise<void>;
};

export class Accounts {
  readonly passwords: Passwords;
  readonly setup: SetupLink;
  readonly #clock: Clock;
  readonly #tries: Throttle;
  readonly #wrong: Throttle;
  readonly #guesses: Guesses;
  #held = 0;
  /** True while the first user is still to be made through the setup link. */
  setupNeeded = false;

  /** What people prove alongside the password. */
  readonly factors: SecondFactors;

  constructor(deps: { store: Store; clock: Clock; encryption: Encryption; hashCost?: HashCost | undefined }) {
    const { clock } = deps;
    this.#clock = clock;
    this.passwords = new Passwords(clock, deps.hashCost);
    this.factors = new SecondFactors(deps);
    this.setup = new SetupLink(deps);
    this.#tries = new Throttle(clock, TRIES);
    this.#wrong = new Throttle(clock, WRONG);
    this.#guesses = new Guesses(clock);
  }

  /** Counts what may be a guess at a password, before any work. Throws 429 when there were too many (rules ID-5, ID-19). */
  countGuess({ address, account: sent, isKnown }: Guesser): Guess {
    const account = emailKey(sent);
    const network = toNetwork(address);
    const counted = isKnown ? `${account} ${network}` : account;
    this.#wrong.count(network);
    try {
      this.#tries.count(`${address} ${account}`);
      this.#guesses.count(counted);
    } catch (error) {
      this.#wrong.forgive(network);
      throw error;
    }
    const asker = { keys: isKnown ? [counted] : [`address ${network}`, `account ${account}`], isKnown };
    const right = (): void => {
      this.#wrong.forgive(network);
      this.#guesses.forgive(counted);
    };
    const wrong = (): Promise<void> =>
      this.#hold(Math.max(this.#guesses.delayOf(counted), this.passwords.waiting * PRESSURE_MS));
    const verify = async (password: string, hash: string | undefined): Promise<boolean> => {
      const isRight = await this.passwords.verify(password, hash, asker).catch(async (error) => {
        // Nothing was looked at. Anyone who is refused would else return immediately.
        right();
        await this.#hold(LATEST_MS);
        throw error;
      });
      if (isRight) right();
      else await wrong();
      return isRight;
    };
    return { verify, right, wrong };
  }

  async #hold(ms: number): Promise<void> {
    if (ms === 0 || this.#held >= HELD) return;
    this.#held++;
    await pause(this.#clock, Math.min(ms, LATEST_MS));
    this.#held--;
  }
}
