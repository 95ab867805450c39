// Limits the bytes that wait for all slow clients together. Each can have a frame of megabytes waiting, and no other limit covers their sum.
import { log } from "#base/log.ts";
import { shareOfMemory } from "#base/system/memory.ts";

const MEMORY_SHARE = 1 / 8;

/** A connection whose client reads too slowly. */
export type Behind = {
  /** Bytes that wait for the client. */
  readonly waiting: number;
  /** Such as a user ID. */
  readonly holder: string | undefined;
  /** Must free what waits immediately. */
  terminate(): void;
};

export class Backlog {
  readonly #behind = new Set<Behind>();
  readonly #least: number;
  readonly #limit: number;

  /** Connections with at most `least` bytes are not counted. */
  constructor(least: number, limit = shareOfMemory(MEMORY_SHARE)) {
    this.#least = least;
    this.#limit = limit;
  }

  /** Notes a connection after a send. Beyond the limit, the holder with the most bytes loses its connections that are behind. */
  note(connection: Behind): void {
    if (connection.waiting <= this.#least) return;
    this.#behind.add(connection);
    const bytes = new Map<string | undefined, number>();
    let sum = 0;
    for (const one of this.#behind) {
      const { waiting } = one;
      if (waiting <= this.#least) this.#behind.delete(one);
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
