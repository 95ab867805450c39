// Shares the readers fairly: users take turns, and a user never has all slots, so that one user's expensive queries cannot block others.
import { AppError } from "#base/errors.ts";
import { getCurrentOrigin } from "#base/origin.ts";

type Waiting = { readonly begin: () => void; readonly refuse: (error: Error) => void };

/** The server's own reads also wait for a slot, but may take all slots. */
const SERVER = "";

/** All anonymous callers count as one user. */
const ANONYMOUS = "anonymous";

/** Returns the user whose request is being handled; undefined outside of requests. */
export const getCurrentUser = (): string | undefined => {
  const origin = getCurrentOrigin();
  return origin && (origin().user_id ?? ANONYMOUS);
};

export class FairScheduler {
  readonly #slots: number;
  readonly #maxPerUser: number;
  readonly #limit: number;
  readonly #running = new Map<string, number>();
  /** Waiting entries by user, in the order of the users' next turns. */
  readonly #waiting = new Map<string, Waiting[]>();
  #usedSlots = 0;
  #size = 0;

  /** `slots`: maximum concurrent runs; `maxPerUser`: of one user; `limit`: maximum running and waiting runs. */
  constructor({ slots, maxPerUser, limit }: { slots: number; maxPerUser: number; limit: number }) {
    this.#slots = slots;
    this.#maxPerUser = Math.max(1, maxPerUser);
    this.#limit = limit;
  }

  /** Runs `work` when it gets a slot. Rejects with 503 when too many runs are waiting. */
  async run<T>(user: string = SERVER, work: () => Promise<T>): Promise<T> {
    if (this.#hasFreeSlot(user)) this.#begin(user);
    else await this.#waitForSlot(user);
    try {
      return await work();
    } finally {
      this.#end(user);
    }
  }

  /** Rejects all waiting runs. */
  rejectAll(error: Error): void {
    const all = [...this.#waiting.values()].flat();
    this.#waiting.clear();
    this.#size = 0;
    for (const { refuse } of all) refuse(error);
  }

  #waitForSlot(user: string): Promise<void> {
    if (this.#usedSlots + this.#size >= this.#limit) this.#makeRoom(user);
    return new Promise((begin, refuse) => {
      const entries = this.#waiting.get(user) ?? [];
      entries.push({ begin, refuse });
      this.#waiting.set(user, entries);
      this.#size += 1;
    });
  }

  /** Rejects the newest entry of the user with the most waiting entries. Throws if that would be the new entry of `user`. */
  #makeRoom(user: string): void {
    let [busiest, entries]: [string, Waiting[]] = [user, []];
    for (const [user_id, waiting] of this.#waiting)
      if (waiting.length > entries.length) [busiest, entries] = [user_id, waiting];
    if (entries.length <= (this.#waiting.get(user)?.length ?? 0) + 1) throw makeOverloadedError();
    const last = entries.pop();
    if (entries.length === 0) this.#waiting.delete(busiest);
    this.#size -= 1;
    last?.refuse(makeOverloadedError());
  }

  #hasFreeSlot(user: string): boolean {
    return this.#usedSlots < this.#slots && (user === SERVER || (this.#running.get(user) ?? 0) < this.#maxPerUser);
  }

  #begin(user: string): void {
    this.#usedSlots += 1;
    this.#running.set(user, (this.#running.get(user) ?? 0) + 1);
  }

  #end(user: string): void {
    this.#usedSlots -= 1;
    const runningCount = (this.#running.get(user) ?? 1) - 1;
    if (runningCount === 0) this.#running.delete(user);
    else this.#running.set(user, runningCount);
    for (const [user_id, entries] of this.#waiting) {
      if (!this.#hasFreeSlot(user_id)) continue;
      const [next] = entries.splice(0, 1);
      // Moves the user to the end of the queue.
      this.#waiting.delete(user_id);
      if (entries.length > 0) this.#waiting.set(user_id, entries);
      this.#size -= 1;
      this.#begin(user_id);
      next?.begin();
      return;
    }
  }
}

const makeOverloadedError = (): AppError => new AppError("overloaded", "Too many queries are running. Please retry.");
