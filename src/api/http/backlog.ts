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
  /** Waiting bytes of each slow connection when it was last noted. */
  readonly #bytesOf = new Map<SlowConnection, number>();
  readonly #ignoredBytes: number;
  readonly #maxBytes: number;
  /** The sum of `#bytesOf`, which clients may have read in part since. */
  #notedBytes = 0;
  /** The sum at which all connections are measured again. */
  #measureAbove: number;

  /** Connections with at most `ignoredBytes` waiting bytes are not counted. */
  constructor(ignoredBytes: number, maxBytes = shareOfMemory(MEMORY_SHARE)) {
    this.#ignoredBytes = ignoredBytes;
    this.#maxBytes = maxBytes;
    this.#measureAbove = maxBytes;
  }

  /**
   * Measures a connection, after a send or when its client has read. If the limit is exceeded, closes the slow connections of the holders
   * with the most waiting bytes.
   */
  note(connection: SlowConnection): void {
    this.#measure(connection);
    if (this.#notedBytes <= this.#measureAbove) return;
    for (const slow of [...this.#bytesOf.keys()]) this.#measure(slow);
    while (this.#notedBytes > this.#maxBytes) this.#closeLargest();
    // Not at each send while the sum is close to the limit.
    this.#measureAbove = Math.max(this.#maxBytes, this.#notedBytes + this.#maxBytes / 16);
  }

  /** Measures a connection again if something waited for its client. */
  refresh(connection: SlowConnection): void {
    if (this.#bytesOf.has(connection)) this.note(connection);
  }

  /** Call when the connection has closed. */
  forget(connection: SlowConnection): void {
    this.#set(connection, 0);
  }

  #measure(connection: SlowConnection): void {
    const { waiting } = connection;
    this.#set(connection, waiting > this.#ignoredBytes ? waiting : 0);
  }

  #set(connection: SlowConnection, bytes: number): void {
    const before = this.#bytesOf.get(connection) ?? 0;
    if (bytes === before) return;
    this.#notedBytes += bytes - before;
    if (bytes === 0) this.#bytesOf.delete(connection);
    else this.#bytesOf.set(connection, bytes);
  }

  #closeLargest(): void {
    const bytesByHolder = new Map<string | undefined, number>();
    for (const [{ holder }, bytes] of this.#bytesOf)
      bytesByHolder.set(holder, (bytesByHolder.get(holder) ?? 0) + bytes);
    const [holder] = [...bytesByHolder].reduce((most, one) => (one[1] > most[1] ? one : most));
    const closed = [...this.#bytesOf.keys()].filter((one) => one.holder === holder);
    for (const slow of closed) {
      this.forget(slow);
      slow.terminate();
    }
    log("http").warn("too much waits for clients that do not read: closed {closed} connections of {holder}", {
      closed: closed.length,
      holder,
    });
  }
}
