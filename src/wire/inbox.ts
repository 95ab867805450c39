// Passes messages from a pump to a consumer, one at a time: the pump waits until the last one was taken, so that a slow consumer applies
// backpressure to the peer. Used by the server side of a call.
import { Wakeup } from "./wakeup.ts";

export class Inbox {
  readonly #changed = new Wakeup();
  #waiting: Uint8Array | undefined;
  #over = false;
  #failure: Error | undefined;

  /** Resolves when the consumer has room again. Messages are dropped if the inbox is closed. */
  async put(message: Uint8Array): Promise<void> {
    while (this.#waiting && !this.#over) await this.#changed.wait();
    if (this.#over) return;
    this.#waiting = message;
    this.#changed.ring();
  }

  /** Returns the next message; undefined after a clean close. Throws the error passed to `fail`. */
  async take(): Promise<Uint8Array | undefined> {
    for (;;) {
      const message = this.#waiting;
      if (message) {
        this.#waiting = undefined;
        this.#changed.ring();
        return message;
      }
      if (this.#failure) throw this.#failure;
      if (this.#over) return undefined;
      await this.#changed.wait();
    }
  }

  /** Closes the inbox; a waiting message can still be taken. */
  close(): void {
    this.#over = true;
    this.#changed.ring();
  }

  /** Closes the inbox with an error for the reader. */
  fail(failure: Error): void {
    if (this.#over) return;
    this.#failure = failure;
    this.close();
  }
}
