// Services that the user routes share for the life of the process: hashing, the setup link, and sign-in rate limits.

import type { Clock } from "#base/clock.ts";
import { toEmailKey } from "#base/email-address.ts";
import type { Encryption } from "#base/encryption.ts";
import { pause } from "#base/retry.ts";
import type { Store } from "#db/engine/store.ts";
import { SecondFactors } from "../factors/second-factors.ts";
import { Guesses } from "./password-attempts.ts";
import { type HashCost, Passwords } from "./passwords.ts";
import { SetupLink } from "./setup-link.ts";
import { Throttle, toNetwork } from "./throttle.ts";

/** Maximum sign-ins and password changes per minute from one address for one account (facts/platform 3.1). */
const MAX_TRIES = 60;
/**
 * Maximum wrong passwords per minute from one address for all accounts together. Counts only wrong ones and is twice the limit per account,
 * because people share addresses and an attacker there must not lock others out.
 */
const MAX_WRONG = 2 * MAX_TRIES;
/** Delay of a wrong password's response per request waiting to be hashed, which slows down a flood of attempts. */
const DELAY_PER_WAITING_MS = 500;
const MAX_DELAY_MS = 5_000;
/** Maximum delayed responses. */
const MAX_HELD = 10_000;

/** An attempt to guess a password. */
export type Guesser = {
  /** The address of the request. */
  readonly address: string;
  /** The account's email address as sent, whether or not the account exists. */
  readonly account: string;
  /** This address has signed in to this account before. Its attempts are counted separately from everyone else's. */
  readonly isKnown: boolean;
  /** The request has a session or token of the account, which may be stolen: all such attempts from unknown addresses count together. */
  readonly isSignedIn?: boolean;
};

export type Guess = {
  /** Returns whether the password is correct. The response to a wrong one is delayed, equally for existing and nonexistent accounts. */
  verify(password: string, hash: string | undefined): Promise<boolean>;
  /** Marks the attempt as correct. */
  markCorrect(): void;
  /** Marks the attempt as wrong: resolves when the response may be sent. */
  markWrong(): Promise<void>;
};

export class Accounts {
  readonly passwords: Passwords;
  readonly setup: SetupLink;
  readonly #clock: Clock;
  readonly #tries: Throttle;
  readonly #wrong: Throttle;
  readonly #guesses: Guesses;
  #heldCount = 0;
  /** True while the first user has not been created through the setup link. */
  setupNeeded = false;

  /** Users' second factors. */
  readonly factors: SecondFactors;

  constructor(deps: { store: Store; clock: Clock; encryption: Encryption; hashCost?: HashCost | undefined }) {
    const { clock } = deps;
    this.#clock = clock;
    this.passwords = new Passwords(clock, deps.hashCost);
    this.factors = new SecondFactors(deps);
    this.setup = new SetupLink(deps);
    this.#tries = new Throttle(clock, MAX_TRIES);
    this.#wrong = new Throttle(clock, MAX_WRONG);
    this.#guesses = new Guesses(clock);
  }

  /** Counts a possible password guess before any work is done. Throws 429 when there were too many (rules ID-5, ID-19). */
  countGuess({ address, account: sent, isKnown, isSignedIn = false }: Guesser): Guess {
    const account = toEmailKey(sent);
    const network = toNetwork(address);
    const guessKey = isKnown ? `${account} ${network}` : isSignedIn ? `${account} signed in` : account;
    this.#wrong.count(network);
    try {
      this.#tries.count(`${address} ${account}`);
      this.#guesses.count(guessKey);
    } catch (error) {
      this.#wrong.forgive(network);
      throw error;
    }
    const isTrusted = isKnown || isSignedIn;
    const requester = {
      keys: isTrusted ? [guessKey] : [`address ${network}`, `account ${account}`],
      isKnown: isTrusted,
    };
    const right = (): void => {
      this.#wrong.forgive(network);
      this.#guesses.forgive(guessKey);
    };
    const wrong = (): Promise<void> =>
      this.#delay(Math.max(this.#guesses.getDelay(guessKey), this.passwords.waiting * DELAY_PER_WAITING_MS));
    const verify = async (password: string, hash: string | undefined): Promise<boolean> => {
      const isRight = await this.passwords.verify(password, hash, requester).catch(async (error) => {
        // The password was not checked, so the attempt is not counted. The rejection is delayed, or the caller could retry immediately.
        right();
        await this.#delay(MAX_DELAY_MS);
        throw error;
      });
      if (isRight) right();
      else await wrong();
      return isRight;
    };
    return { verify, markCorrect: right, markWrong: wrong };
  }

  async #delay(ms: number): Promise<void> {
    if (ms === 0 || this.#heldCount >= MAX_HELD) return;
    this.#heldCount++;
    await pause(this.#clock, Math.min(ms, MAX_DELAY_MS));
    this.#heldCount--;
  }
}
