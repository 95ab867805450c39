// The bounded send queue of one peer of the coordinator: a peer that does not read loses its stream instead of using memory (facts/wire
// 2.2). [TL-13]
import { Wakeup } from "#src/wire/index.ts";

/** Maximum number of queued responses (facts/wire 2.2). */
const MAX_RESPONSES = 512;
/** Maximum size of queued responses. */
const MAX_BYTES = 4 * 1024 * 1024;

export class ResponseQueue<T> {
  readonly #changed = new Wakeup();
  #waiting: { item: T; bytes: number }[] = [];
  #bytes = 0;
  #isClosed = false;

  /** Adds an item. Returns false if the queue is full; the queue is then emptied, and the caller must close it. */
  put(item: T, bytes: number): boolean {
    if (this.#isClosed) return true;
    this.#waiting.push({ item, bytes });
    this.#bytes += bytes;
    this.#changed.wake();
    if (this.#waiting.length <= MAX_RESPONSES && this.#bytes <= MAX_BYTES) return true;
    this.#waiting = [];
    return false;
  }

  /** Closes the queue. The queued items, and `last` after them, are still sent. */
  close(last?: T): void {
    if (this.#isClosed) return;
    if (last !== undefined) this.#waiting.push({ item: last, bytes: 0 });
    this.#isClosed = true;
    this.#changed.wake();
  }

  /** Yields the items in order until the queue is closed and empty. */
  async *take(): AsyncGenerator<T, void, undefined> {
    for (;;) {
      const next = this.#waiting.shift();
      if (next) {
        this.#bytes -= next.bytes;
        yield next.item;
      } else if (this.#isClosed) return;
      else await this.#changed.wait();
    }
  }
}
