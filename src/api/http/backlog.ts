// Limits the total bytes that wait for slow clients. Megabytes can wait for each client, and no other limit covers the sum.
import { log } from "#base/log.ts";
import { shareOfMemory } from "#base/system/memory.ts";

const MEMORY_SHARE = 1 / 8;

/** A connection whose client reads too slowly. */
export type Behind = {
  /** Bytes that wait for the client. */
  readonly waiting: number;
  /** Whose connection it is, such as a user ID. */
  readonly holder: string | undefined;
  /** Must free the waiting bytes immediately. */
  terminate(): void;
};

export class Backlog {
  readonly #behind = new Set<Behind>();
  readonly #ignoredBytes: number;
  readonly #limit: number;

  /** Connections with at most `ignoredBytes` waiting bytes are not counted. */
  constructor(ignoredBytes: number, limit = shareOfMemory(MEMORY_SHARE)) {
    this.#ignoredBytes = ignoredBytes;
    this.#limit = limit;
  }

  /** Checks a connection after a send. If the limit is exceeded, closes the slow connections of the holder with the most waiting bytes. */
  note(connection: Behind): void {
    if (connection.waiting <= this.#ignoredBytes) return;
    this.#behind.add(connection);
    const bytes = new Map<string | undefined, number>();
    let sum = 0;
    for (const one of this.#behind) {
      const { waiting } = one;
      if (waiting <= this.#ignoredBytes) this.#behind.delete(one);
      else {
        sum += waiting;
        bytes.set(one.holder, (bytes.get(one.holder) ?? 0) + waiting);
      }
    }
    if (sum <= this.#limit) return;
    const [holder] = [...bytes].reduce((most, one) => (one[1] > most[1] ? one : most));
    const cut = [...this.#behind].filter((one) => one.holder === holder);
    for (const one of cut) {
      this.#behind.delete(one);
      one.terminate();
    }
    log("http").warn("too much waits for clients that do not read: closed {closed} connections of {holder}", {
      closed: cut.length,
      holder,
    });
  }
}
