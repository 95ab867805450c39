// Hashes passwords with argon2id on Bun's threads, a few at a time, because each takes 19 MiB and a core. Waiting requests are bounded and
// served fairly (hash-queue.ts); requests beyond the limit are rejected (rules ID-6, ID-18). Used by everything that sets or checks a
// password.
import type { Clock } from "#base/clock.ts";
import { AppError, invalidField } from "#base/errors.ts";
import { type HashCaller, HashQueue } from "./hash-queue.ts";
import { findShapeProblem, findStrengthProblem, type PasswordOwner } from "./password-rules.ts";
import { estimateGuesses } from "./strength.ts";

/** The cost of one hash; `memoryCost` is in KiB. */
export type HashCost = { readonly algorithm: "argon2id"; readonly memoryCost: number; readonly timeCost: number };

/** OWASP's recommendation for argon2id: 19 MiB, two passes. */
const RECOMMENDED_COST: HashCost = { algorithm: "argon2id", memoryCost: 19_456, timeCost: 2 };

/** A hash of a forgotten random password, so that an unknown user costs the same work as a wrong password (rule ID-4). */
const DUMMY_HASH =
  "$argon2id$v=19$m=19456,t=2,p=1$XUf6h9tIF+LGxSly+B9G4+uRww8DCdr7/we6G5JP0cg$YrVMLo3cc+0Yk5Bd2hHc9fP7oPNtgcyPbws37hMqTTI";

const MAX_CONCURRENT = 2;
const MAX_WAITING = 512;
/** After this time, a waiting client has disconnected or will retry. */
const MAX_WAIT_MS = 25_000;

/** Callers on the command line, or signed-in callers who may set passwords. */
const TRUSTED_CALLER: HashCaller = { keys: [], isKnown: true };

type Turn = { go(): void; refuse(): void };

export class Passwords {
  readonly #clock: Clock;
  readonly #cost: HashCost;
  readonly #queue: HashQueue<Turn>;
  #running = 0;

  /** Costs other than the recommended one are for tests only. */
  constructor(clock: Clock, cost: HashCost = RECOMMENDED_COST) {
    this.#clock = clock;
    this.#cost = cost;
    this.#queue = new HashQueue(clock, MAX_WAITING, MAX_WAIT_MS);
  }

  /** Returns the number of waiting requests. */
  get waiting(): number {
    return this.#queue.size;
  }

  hash(password: string, caller: HashCaller = TRUSTED_CALLER): Promise<string> {
    return this.#runInTurn(caller, () => Bun.password.hash(password, this.#cost));
  }

  /** Returns false without a hash too, after the same work. */
  async verify(password: string, hash: string | undefined, caller: HashCaller = TRUSTED_CALLER): Promise<boolean> {
    const isRight = await this.#runInTurn(
      caller,
      async () => (await Bun.password.verify(password, hash || DUMMY_HASH)) && Boolean(hash),
    );
    if (isRight) this.#queue.forgive(caller);
    return isRight;
  }

  /** Returns the problem with a new password, for people; empty if it is acceptable. Queued like hashing, because it takes as long. */
  async problem(password: string, owner: PasswordOwner, caller: HashCaller = TRUSTED_CALLER): Promise<string> {
    const problem = findShapeProblem(password, owner);
    if (problem) return problem;
    return findStrengthProblem(password, await this.#runInTurn(caller, () => estimateGuesses(this.#clock, password)));
  }

  /** Throws 400 for an unacceptable new password. */
  async check(password: string, owner: PasswordOwner): Promise<void> {
    const problem = await this.problem(password, owner);
    if (problem) throw invalidField("password", problem);
  }

  async #runInTurn<T>(caller: HashCaller, work: () => Promise<T>): Promise<T> {
    if (this.#running < MAX_CONCURRENT) this.#running++;
    // A finished request passes its slot on, so the count is unchanged.
    else await new Promise<void>((go, reject) => this.#enqueue(caller, { go, refuse: () => reject(tooManySignIns()) }));
    this.#queue.recordUse(caller);
    try {
      return await work();
    } finally {
      const { next, late } = this.#queue.next();
      for (const one of late) one.refuse();
      if (next) next.go();
      else this.#running--;
    }
  }

  #enqueue(caller: HashCaller, turn: Turn): void {
    this.#queue.add(turn, caller)?.refuse();
  }
}

const tooManySignIns = (): AppError => new AppError("overloaded", "Too many people are signing in. Please retry.");
