// An actor's queue of messages: handles one at a time, in order, with a bounded length. A message that waits for its own mailbox would
// deadlock, so it is rejected immediately (rules AC-1 to AC-3).
import { AsyncLocalStorage } from "node:async_hooks";
import PQueue from "p-queue";
import { AppError } from "#base/errors.ts";
import { isTraceEnabled } from "#base/log.ts";
import { runOutsideRequest } from "#base/network/current-request.ts";
import { getCurrentOrigin, withOrigin } from "#base/origin.ts";
import { bindToSpan } from "#base/spans.ts";
import { traceMessage } from "#base/trace.ts";

/** Maximum messages that wait for one actor. More are answered "overloaded" (docs/spec/design.md 3, rule 6). */
export const MAX_WAITING_MESSAGES = 256;

/** Observes every message of every mailbox for metrics. Must be fast and must not throw. */
type MailboxWatcher = { entered(): number; begun(at: number): void };
let watcher: MailboxWatcher | undefined;

/** Replaces the watcher; undefined removes it. */
export const watchMailboxes = (next: MailboxWatcher | undefined): void => {
  watcher = next;
};

const currentMailbox = new AsyncLocalStorage<Mailbox | undefined>();

export class Mailbox {
  #queue: PQueue | undefined;
  readonly #owner: string;

  /** `owner` names the actor in traces. */
  constructor(owner = "") {
    this.#owner = owner;
  }

  /** Runs the task after all earlier ones. Rejects with 503 when the mailbox is full. */
  run<T>(task: () => Promise<T>): Promise<T> {
    if (currentMailbox.getStore() === this) {
      return Promise.reject(new Error("an actor cannot send itself a message and wait while it handles one"));
    }
    const queue = this.#queue ?? new PQueue({ concurrency: 1 });
    this.#queue = queue;
    if (queue.size >= MAX_WAITING_MESSAGES) {
      return Promise.reject(new AppError("overloaded", "Too many requests are waiting for this resource."));
    }
    const work = bindToSpan(isTraceEnabled() ? traceMessage(this.#owner, task) : task);
    const origin = getCurrentOrigin();
    const currentWatcher = watcher;
    const enteredAt = currentWatcher?.entered() ?? 0;
    return queue.add(async () => {
      currentWatcher?.begun(enteredAt);
      try {
        // The request's shard may differ from the actor's, and the caller that drains the queue may belong to a third.
        return await runOutsideRequest(() => currentMailbox.run(this, () => withOrigin(origin, work)));
      } finally {
        // An idle actor needs no queue: a queue takes a kilobyte, and creating one takes only a microsecond.
        if (queue.size === 0) this.#queue = undefined;
      }
    }) as Promise<T>;
  }

  /** Whether nothing is running or waiting. */
  get isIdle(): boolean {
    return this.#queue === undefined;
  }

  /** Resolves when all waiting tasks have run. */
  async whenDrained(): Promise<void> {
    await this.#queue?.onIdle();
  }
}

/**
 * Runs `work` outside of any message or request context: for effects, which may message the actor that started them and may outlive the
 * request.
 */
export const runOutsideMailbox = <T>(work: () => T): T =>
  runOutsideRequest(() => withOrigin(undefined, () => currentMailbox.run(undefined, work)));
