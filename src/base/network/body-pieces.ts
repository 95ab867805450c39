// Bodies that come in very small pieces: an HTTP chunk of one byte costs the event loop as much as one of 64 KiB. What is not asked for in the meantime
// comes as one piece.
import type { Clock } from "../clock.ts";
import { nextTurn, pause } from "../retry.ts";

/** Pieces of any size that a body may have. */
const FREE_PIECES = 1_000;
const MIN_AVERAGE_BYTES = 64;

/** Counts the pieces of a body. */
export class PieceCount {
  #pieces = 0;
  #bytes = 0;

  /** Takes the next piece. Returns whether there were too many for what is in them. */
  take({ byteLength }: Uint8Array): boolean {
    this.#pieces += 1;
    this.#bytes += byteLength;
    return this.#pieces > FREE_PIECES && this.#bytes < this.#pieces * MIN_AVERAGE_BYTES;
  }
}

const BATCH = 64;
const SMALL_BYTES = 512;
const PAUSE_MS = 20;

/** The same body, with a pause after so many small pieces in a row, and a turn for others after larger ones. */
export async function* unhurried(clock: Clock, body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let pieces = 0;
  let bytes = 0;
  for await (const piece of body) {
    yield piece;
    pieces += 1;
    bytes += piece.byteLength;
    if (pieces < BATCH) continue;
    if (bytes < BATCH * SMALL_BYTES) await pause(clock, PAUSE_MS);
    else await nextTurn();
    pieces = 0;
    bytes = 0;
  }
}
