// Messages of one kind that wait for the same actor go through one turn together: one commit, one announcement. In order, bounded,
// each with an answer of its own. Used for log lines, where a commit for each batch would make a crowd of followers expensive.

import { AppError } from "#base/errors.ts";
import { alsoFor, currentRequests, runAsPartOf, tracing } from "#base/trace.ts";
import { MAILBOX_LIMIT } from "../runtime/mailbox.ts";

export type Waiting<Item, Answer> = {
  readonly item: Item;
  resolve(answer: Answer): void;
  reject(error: unknown): void;
  /** For whom it is, while that is traced. */
  readonly requests?: ReadonlySet<string>;
};

export type BatcherOptions<Item, Answer> = {
  /** What one item adds to a group. */
  cost(item: Item): number;
  /** A group ends before this cost is passed, unless its first item alone passes it. */
  most: number;
  /**
   * Runs one turn. `take` gives the group, once the turn has begun. The result answers its members and is called after the commit;
   * a rejection refuses the whole group.
   */
  run(take: () => Waiting<Item, Answer>[]): Promise<() => void>;
  /** Nothing waits any more: anyone who made this may release it. */
  idle(): void;
};

export class Batcher<Item, Answer> {
  readonly #options: BatcherOptions<Item, Answer>;
  #waiting: Waiting<Item, Answer>[] = [];
  #draining: Promise<void> | undefined;

  constructor(options: BatcherOptions<Item, Answer>) {
    this.#options = options;
  }

  /** Answers once the item's group is through. 503 when as many wait as a mailbox holds. */
  add(item: Item): Promise<Answer> {
    if (this.#waiting.length >= MAILBOX_LIMIT) {
      return Promise.reject(new AppError("overloaded", "Too many requests are waiting for this resource."));
    }
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    if (tracing()) this.#waiting.push({ item, resolve, reject, requests: currentRequests() });
    else this.#waiting.push({ item, resolve, reject });
    // Those who come later are not served on behalf of the one who came first.
    this.#draining ??= tracing() ? runAsPartOf([], () => this.#drain()) : this.#drain();
    return promise;
  }

  /** Resolves when everything that was waiting has been answered. */
  async drained(): Promise<void> {
    await this.#draining;
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      let group: Waiting<Item, Answer>[] | undefined;
      const take = (): Waiting<Item, Answer>[] => {
        group = this.#take();
        for (const { requests } of group) if (requests) alsoFor(requests);
        return group;
      };
      try {
        const answer = await this.#options.run(take);
        answer();
      } catch (error) {
        // A turn that did not begin (no such actor, a full mailbox) has taken nothing: then all who wait are refused.
        for (const { reject } of group ?? this.#waiting.splice(0)) reject(error);
      }
    }
    this.#draining = undefined;
    this.#options.idle();
  }

  #take(): Waiting<Item, Answer>[] {
    let cost = 0;
    let count = 0;
    for (const { item } of this.#waiting) {
      cost += this.#options.cost(item);
      if (count > 0 && cost > this.#options.most) break;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }
}
