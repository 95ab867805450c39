// Limits the total bytes that wait for slow clients. Megabytes can wait for each client, and no other limit covers the sum.
import { log } from "#base/log.ts";
import { shareOfMemory } from "#base/system/memory.ts";

const MEMORY_SHARE = 1 / 8;

/** A connection whose client reads too slowly. */
export type SlowConnection = {
  /** Bytes that wait for the client. */
  readonly waiting: number;
  /** Whose connection it is, such as a user ID. */
  readonly holder: string | undefined;
  /** Must free the waiting bytes immediately. */
  terminate(): void;
};

export class Backlog {
  readonly #slow = new Set<SlowConnection>();
  readonly #ignoredBytes: number;
  readonly #maxBytes: number;

  /** Connections with at most `ignoredBytes` waiting bytes are not counted. */
  constructor(ignoredBytes: number, maxBytes = shareOfMemory(MEMORY_SHARE)) {
    this.#ignoredBytes = ignoredBytes;
    this.#maxBytes = maxBytes;
  }

  /** Checks a connection after a send. If the limit is exceeded, closes the slow connections of the holder with the most waiting bytes. */
  note(connection: SlowConnection): void {
    if (connection.waiting <= this.#ignoredBytes) return;
    this.#slow.add(connection);
    const bytesByHolder = new Map<string | undefined, number>();
    let totalBytes = 0;
    for (const slow of this.#slow) {
      const { waiting } = slow;
      if (waiting <= this.#ignoredBytes) this.#slow.delete(slow);
      else {
        totalBytes += waiting;
        bytesByHolder.set(slow.holder, (bytesByHolder.get(slow.holder) ?? 0) + waiting);
      }
    }
    if (totalBytes <= this.#maxBytes) return;
    const [holder] = [...bytesByHolder].reduce((most, one) => (one[1] > most[1] ? one : most));
    const closed = [...this.#slow].filter((one) => one.holder === holder);
    for (const slow of closed) {
      this.#slow.delete(slow);
      slow.terminate();
    }
    log("http").warn("too much waits for clients that do not read: closed {closed} connections of {holder}", {
      closed: closed.length,
      holder,
    });
  }
}
