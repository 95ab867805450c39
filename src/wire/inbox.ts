// Passes messages from a pump to a consumer, one at a time: the pump waits until the last one was taken, so that a slow consumer applies
// backpressure to the peer. Used by the server side of a call.
import type { PacketBudget } from "./drpc/packets.ts";
import { Wakeup } from "./wakeup.ts";

export class Inbox {
  readonly #budget: PacketBudget;
  readonly #changed = new Wakeup();
  #waiting: Uint8Array | undefined;
  /** Bytes of the message that the consumer handles now. */
  #taken = 0;
  #isClosed = false;
  #failure: Error | undefined;

  /** `budget`: holds a message from `put` until the consumer takes the next one. */
  constructor(budget: PacketBudget) {
    this.#budget = budget;
  }

  /** Resolves when the consumer has room again. Messages are dropped if the inbox is closed. Throws WireError beyond the budget. */
  async put(message: Uint8Array): Promise<void> {
    if (this.#isClosed) return;
    // A message that waits for room counts too. Otherwise each stream could keep one outside of the budget.
    this.#budget.hold(message.byteLength);
    while (this.#waiting && !this.#isClosed) await this.#changed.wait();
    if (this.#isClosed) return this.#budget.release(message.byteLength);
    this.#waiting = message;
    this.#changed.wake();
  }

  /** Returns the next message; undefined after a clean close. Throws the error passed to `fail`. */
  async take(): Promise<Uint8Array | undefined> {
    this.#budget.release(this.#taken);
    this.#taken = 0;
    for (;;) {
      const message = this.#waiting;
      if (message) {
        this.#waiting = undefined;
        this.#taken = message.byteLength;
        this.#changed.wake();
        return message;
      }
      if (this.#failure) throw this.#failure;
      if (this.#isClosed) return undefined;
      await this.#changed.wait();
    }
  }

  /** Closes the inbox; a waiting message can still be taken. */
  close(): void {
    this.#isClosed = true;
    this.#changed.wake();
  }

  /** Closes the inbox with an error for the reader. */
  fail(failure: Error): void {
    if (this.#isClosed) return;
    this.#failure = failure;
    this.close();
  }

  /** Closes the inbox and drops its messages, because the consumer has ended. */
  discard(): void {
    this.close();
    this.#budget.release(this.#taken + (this.#waiting?.byteLength ?? 0));
    this.#taken = 0;
    this.#waiting = undefined;
  }
}
