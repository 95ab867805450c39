// Passes messages from the reader of a stream to a consumer, one at a time. The reader waits until the consumer has taken the last message,
// so that a slow consumer applies backpressure to the peer. Used by the server side of a call.
import type { PacketBudget } from "./drpc/packets.ts";
import { Wakeup } from "./wakeup.ts";

export class Inbox {
  readonly #budget: PacketBudget;
  readonly #changed = new Wakeup();
  #waiting: Uint8Array | undefined;
  /** Bytes of the message that the consumer is handling. */
  #takenBytes = 0;
  #isClosed = false;
  #failure: Error | undefined;

  /** A message counts against the budget from `put` until the consumer takes the next one. */
  constructor(budget: PacketBudget) {
    this.#budget = budget;
  }

  /** Resolves when the message is in the inbox, or dropped because the inbox is closed. Throws WireError beyond the budget. */
  async put(message: Uint8Array): Promise<void> {
    if (this.#isClosed) return;
    // A message that waits until the inbox is empty counts too. Otherwise each stream could hold one outside of the budget.
    this.#budget.hold(message.byteLength);
    while (this.#waiting && !this.#isClosed) await this.#changed.wait();
    if (this.#isClosed) return this.#budget.release(message.byteLength);
    this.#waiting = message;
    this.#changed.wake();
  }

  /** Returns the next message; undefined after a clean close. Throws the error passed to `fail`. */
  async take(): Promise<Uint8Array | undefined> {
    this.#budget.release(this.#takenBytes);
    this.#takenBytes = 0;
    for (;;) {
      const message = this.#waiting;
      if (message) {
        this.#waiting = undefined;
        this.#takenBytes = message.byteLength;
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

  /** Closes the inbox with an error for the consumer. */
  fail(failure: Error): void {
    if (this.#isClosed) return;
    this.#failure = failure;
    this.close();
  }

  /** Closes the inbox and drops its messages, because the consumer has ended. */
  discard(): void {
    this.close();
    this.#budget.release(this.#takenBytes + (this.#waiting?.byteLength ?? 0));
    this.#takenBytes = 0;
    this.#waiting = undefined;
  }
}
