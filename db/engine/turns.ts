// Who reads next: people take turns, and none of them has all places at the same time, so that what one person asks for, however much of it and
// however costly, holds up no one else.
import { AppError } from "#base/errors.ts";
import { originNow } from "#base/origin.ts";

type Waiting = { readonly begin: () => void; readonly refuse: (error: Error) => void };

/** What the server does for itself waits for a place, and takes as many as there are. */
const SERVER = "";

/** All who have not signed in are one person. */
const STRANGERS = "strangers";

/** Whose request is being answered; undefined: the server works for itself. */
export const personNow = (): string | undefined => {
  const origin = originNow();
  return origin && (origin().user_id ?? STRANGERS);
};

export class Turns {
  readonly #places: number;
  readonly #ofOne: number;
  readonly #limit: number;
  readonly #running = new Map<string, number>();
  /** By person, and whose turn is next first. */
  readonly #waiting = new Map<string, Waiting[]>();
  #taken = 0;
  #size = 0;

  /** `places`: how many may run at the same time, `ofOne` of one person; `limit`: how many may run or wait. */
  constructor({ places, ofOne, limit }: { places: number; ofOne: number; limit: number }) {
    this.#places = places;
    this.#ofOne = Math.max(1, ofOne);
    this.#limit = limit;
  }

  /** Runs `work` when it is its turn. Rejects with 503 when too much waits. */
  async run<T>(who: string = SERVER, work: () => Promise<T>): Promise<T> {
    if (this.#hasPlace(who)) this.#begin(who);
    else await this.#turn(who);
    try {
      return await work();
    } finally {
      this.#end(who);
    }
  }

  /** Refuses all that wait. */
  refuseAll(error: Error): void {
    const all = [...this.#waiting.values()].flat();
    this.#waiting.clear();
    this.#size = 0;
    for (const { refuse } of all) refuse(error);
  }

  #turn(who: string): Promise<void> {
    if (this.#taken + this.#size >= this.#limit) this.#makeRoom(who);
    return new Promise((begin, refuse) => {
      const own = this.#waiting.get(who) ?? [];
      own.push({ begin, refuse });
      this.#waiting.set(who, own);
      this.#size += 1;
    });
  }

  /** Refuses what came last of whoever has the most waiting: the newcomer's own request where that is the newcomer. */
  #makeRoom(who: string): void {
    const [crowd = who, jobs = []] = [...this.#waiting].reduce<[string?, Waiting[]?]>(
      (most, one) => (one[1].length > (most[1]?.length ?? 0) ? one : most),
      [],
    );
    if (jobs.length <= (this.#waiting.get(who)?.length ?? 0) + 1) throw overloaded();
    const last = jobs.pop();
    if (jobs.length === 0) this.#waiting.delete(crowd);
    this.#size -= 1;
    last?.refuse(overloaded());
  }

  #hasPlace(who: string): boolean {
    return this.#taken < this.#places && (who === SERVER || (this.#running.get(who) ?? 0) < this.#ofOne);
  }

  #begin(who: string): void {
    this.#taken += 1;
    this.#running.set(who, (this.#running.get(who) ?? 0) + 1);
  }

  #end(who: string): void {
    this.#taken -= 1;
    const left = (this.#running.get(who) ?? 1) - 1;
    if (left === 0) this.#running.delete(who);
    else this.#running.set(who, left);
    for (const [next, jobs] of this.#waiting) {
      if (!this.#hasPlace(next)) continue;
      const [first] = jobs.splice(0, 1);
      // Behind everyone else who waits.
      this.#waiting.delete(next);
      if (jobs.length > 0) this.#waiting.set(next, jobs);
      this.#size -= 1;
      this.#begin(next);
      first?.begin();
      return;
    }
  }
}

const overloaded = (): AppError => new AppError("overloaded", "Too many searches are running.");
