// Shares the readers fairly: users take turns, and no user holds all slots, so that one user's expensive queries cannot block others.
import { AppError } from "#base/errors.ts";
import { getCurrentOrigin } from "#base/origin.ts";

type Waiting = { readonly begin: () => void; readonly refuse: (error: Error) => void };

/** The server's own reads wait for a slot, too, but may take all of them. */
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
  /** By user, in the order of their next turns. */
  readonly #waiting = new Map<string, Waiting[]>();
  #usedSlots = 0;
  #size = 0;

  /** `slots`: maximum concurrent runs; `maxPerUser`: of one user; `limit`: maximum running and waiting runs. */
  constructor({ slots, maxPerUser, limit }: { slots: number; maxPerUser: number; limit: number }) {
    this.#slots = slots;
    this.#maxPerUser = Math.max(1, maxPerUser);
    this.#limit = limit;
  }

  /** Runs `work` when it has a slot. Rejects with 503 when too many are waiting. */
  async run<T>(who: string = SERVER, work: () => Promise<T>): Promise<T> {
    if (this.#hasFreeSlot(who)) this.#begin(who);
    else await this.#waitForSlot(who);
    try {
      return await work();
    } finally {
      this.#end(who);
    }
  }

  /** Rejects all waiting runs. */
  rejectAll(error: Error): void {
    const all = [...this.#waiting.values()].flat();
    this.#waiting.clear();
    this.#size = 0;
    for (const { refuse } of all) refuse(error);
  }

  #waitForSlot(who: string): Promise<void> {
    if (this.#usedSlots + this.#size >= this.#limit) this.#makeRoom(who);
    return new Promise((begin, refuse) => {
      const own = this.#waiting.get(who) ?? [];
      own.push({ begin, refuse });
      this.#waiting.set(who, own);
      this.#size += 1;
    });
  }

  /** Rejects the newest entry of the user with the most waiting entries, which may be the caller's own. */
  #makeRoom(who: string): void {
    const [busiest = who, jobs = []] = [...this.#waiting].reduce<[string?, Waiting[]?]>(
      (most, one) => (one[1].length > (most[1]?.length ?? 0) ? one : most),
      [],
    );
    if (jobs.length <= (this.#waiting.get(who)?.length ?? 0) + 1) throw overloadedError();
    const last = jobs.pop();
    if (jobs.length === 0) this.#waiting.delete(busiest);
    this.#size -= 1;
    last?.refuse(overloadedError());
  }

  #hasFreeSlot(who: string): boolean {
    return this.#usedSlots < this.#slots && (who === SERVER || (this.#running.get(who) ?? 0) < this.#maxPerUser);
  }

  #begin(who: string): void {
    this.#usedSlots += 1;
    this.#running.set(who, (this.#running.get(who) ?? 0) + 1);
  }

  #end(who: string): void {
    this.#usedSlots -= 1;
    const left = (this.#running.get(who) ?? 1) - 1;
    if (left === 0) this.#running.delete(who);
    else this.#running.set(who, left);
    for (const [next, jobs] of this.#waiting) {
      if (!this.#hasFreeSlot(next)) continue;
      const [first] = jobs.splice(0, 1);
      // Moves the user to the end of the queue.
      this.#waiting.delete(next);
      if (jobs.length > 0) this.#waiting.set(next, jobs);
      this.#size -= 1;
      this.#begin(next);
      first?.begin();
      return;
    }
  }
}

const overloadedError = (): AppError => new AppError("overloaded", "Too many queries are running. Please retry.");
