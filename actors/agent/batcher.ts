// Groups messages of one kind that wait for the same actor: each group takes one message, one commit and one announcement. Groups keep
// their order and are bounded, and every message gets its own answer. Used for log lines, because a commit per batch would be expensive
// with many followers.

import { AppError } from "#base/errors.ts";
import { isTraceEnabled } from "#base/log.ts";
import { addRequests, getCurrentRequests, runForRequests } from "#base/trace.ts";
import { MAX_WAITING_MESSAGES } from "../runtime/mailbox.ts";

export type Waiting<Item, Answer> = {
  readonly item: Item;
  resolve(answer: Answer): void;
  reject(error: unknown): void;
  /** IDs of the requests that this item serves; set while tracing is on. */
  readonly requests?: ReadonlySet<string>;
};

export type BatcherOptions<Item, Answer> = {
  /** Returns what one item adds to the cost of a group. */
  cost(item: Item): number;
  /** A single item may exceed it. */
  maxCost: number;
  /**
   * Handles one group. `take` returns its items and is called when the actor handles the group's message. After the commit, the batcher
   * calls the returned function, which answers the items. A rejection rejects the whole group.
   */
  run(take: () => Waiting<Item, Answer>[]): Promise<() => void>;
  /** Called when nothing waits, so that the owner can release the batcher. */
  idle(): void;
};

export class Batcher<Item, Answer> {
  readonly #options: BatcherOptions<Item, Answer>;
  #waiting: Waiting<Item, Answer>[] = [];
  #draining: Promise<void> | undefined;

  constructor(options: BatcherOptions<Item, Answer>) {
    this.#options = options;
  }

  /** Resolves once the item's group is committed. Rejects with 503 when a mailbox's worth of items already waits. */
  add(item: Item): Promise<Answer> {
    if (this.#waiting.length >= MAX_WAITING_MESSAGES) {
      return Promise.reject(new AppError("overloaded", "Too many requests are waiting for this resource."));
    }
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    if (isTraceEnabled()) this.#waiting.push({ item, resolve, reject, requests: getCurrentRequests() });
    else this.#waiting.push({ item, resolve, reject });
    // Keeps later items from being traced as part of the first item's request.
    this.#draining ??= isTraceEnabled() ? runForRequests([], () => this.#drain()) : this.#drain();
    return promise;
  }

  /** Resolves when every waiting item has been answered. */
  async whenDrained(): Promise<void> {
    await this.#draining;
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      let group: Waiting<Item, Answer>[] | undefined;
      const takeGroup = (): Waiting<Item, Answer>[] => {
        group = this.#takeGroup();
        for (const { requests } of group) if (requests) addRequests(requests);
        return group;
      };
      try {
        const answerGroup = await this.#options.run(takeGroup);
        answerGroup();
      } catch (error) {
        // An actor that does not exist, or whose mailbox is full, has taken no items. Then every waiting item is rejected.
        for (const { reject } of group ?? this.#waiting.splice(0)) reject(error);
      }
    }
    this.#draining = undefined;
    this.#options.idle();
  }

  #takeGroup(): Waiting<Item, Answer>[] {
    let cost = 0;
    let count = 0;
    for (const { item } of this.#waiting) {
      cost += this.#options.cost(item);
      if (count > 0 && cost > this.#options.maxCost) break;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }
}
