// One actor's queue of messages: one at a time, in order, bounded. A turn that waits for its own mailbox would wait forever, so
// that is refused immediately (rules AC-1 to AC-3).
import { AsyncLocalStorage } from "node:async_hooks";
import PQueue from "p-queue";
import { AppError } from "#base/errors.ts";
import { besideRequest } from "#base/network/request-part.ts";
import { originNow, withOrigin } from "#base/origin.ts";
import { carrySpan } from "#base/spans.ts";
import { tracedMessage, tracing } from "#base/trace.ts";

/** Messages that may wait for one actor; more are answered "overloaded" (docs/spec/design.md 3, rule 6). */
export const MAILBOX_LIMIT = 256;

/** Hears of every message of every mailbox, for figures; must be quick and may not throw. */
type MailboxWatcher = { entered(): number; begun(at: number): void };
let watcher: MailboxWatcher | undefined;

/** From now on this one hears of them, in the place of the one before; undefined: nobody. */
export const watchMailboxes = (next: MailboxWatcher | undefined): void => {
  watcher = next;
};

const turn = new AsyncLocalStorage<Mailbox | undefined>();

export class Mailbox {
  #queue: PQueue | undefined;
  readonly #owner: string;

  /** `owner` names the actor in the trace of a request. */
  constructor(owner = "") {
    this.#owner = owner;
  }

  /** Runs the task after all earlier ones. 503 when the mailbox is full. */
  run<T>(task: () => Promise<T>): Promise<T> {
    if (turn.getStore() === this) {
      return Promise.reject(new Error("an actor may not ask itself inside its own turn: it would wait for ever"));
    }
    const queue = this.#queue ?? new PQueue({ concurrency: 1 });
    this.#queue = queue;
    if (queue.size >= MAILBOX_LIMIT) {
      return Promise.reject(new AppError("overloaded", "Too many requests are waiting for this resource."));
    }
    const work = carrySpan(tracing() ? tracedMessage(this.#owner, task) : task);
    const origin = originNow();
    const watching = watcher;
    const at = watching?.entered() ?? 0;
    return queue.add(async () => {
      watching?.begun(at);
      try {
        // Who has asked may be of another part than the actor, and anyone who runs the queue may be a third.
        return await besideRequest(() => turn.run(this, () => withOrigin(origin, work)));
      } finally {
        // A queue holds a kilobyte and costs a microsecond to make: an idle actor has none.
        if (queue.size === 0) this.#queue = undefined;
      }
    }) as Promise<T>;
  }

  /** True when nothing runs and nothing waits. */
  get idle(): boolean {
    return this.#queue === undefined;
  }

  /** Resolves when everything that was waiting has run. */
  async drained(): Promise<void> {
    await this.#queue?.onIdle();
  }
}

/**
 * Runs `work` outside of any turn, and for nobody: for effects, which may send messages to the actor that started them, and which go on
 * when anyone who has asked is answered.
 */
export const outsideTurn = <T>(work: () => T): T =>
  besideRequest(() => withOrigin(undefined, () => turn.run(undefined, work)));
