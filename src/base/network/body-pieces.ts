// Limits bodies that arrive in very small pieces: an HTTP chunk of one byte costs the event loop as much as one of 64 KiB. Pieces that
// arrive while the reader is busy are joined into one. Also detects bodies that arrive too slowly.
import type { Clock, Timer } from "../clock.ts";
import { nextTurn, pause } from "../retry.ts";

/** A body may have this many pieces of any size. */
const MAX_FREE_PIECES = 1_000;
const MIN_AVERAGE_BYTES = 64;

/** Counts the pieces of a body, and detects bodies that are split into too many small ones. */
export class PieceCounter {
  #pieces = 0;
  #bytes = 0;

  /** Counts the next piece. Returns true once there are too many pieces for their total size. */
  add({ byteLength }: Uint8Array): boolean {
    this.#pieces += 1;
    this.#bytes += byteLength;
    return this.#pieces > MAX_FREE_PIECES && this.#bytes < this.#pieces * MIN_AVERAGE_BYTES;
  }
}

const PIECES_PER_PAUSE = 64;
const SMALL_BYTES = 512;
const PAUSE_MS = 20;

/**
 * Yields the same body. Pauses after many small pieces in a row, and yields to other work after larger ones. `onEnd` is called when the
 * body has ended or its reader has stopped.
 */
export async function* paceBody(
  clock: Clock,
  body: AsyncIterable<Uint8Array>,
  onEnd: () => void = () => {},
): AsyncGenerator<Uint8Array> {
  let pieces = 0;
  let bytes = 0;
  try {
    for await (const piece of body) {
      yield piece;
      pieces += 1;
      bytes += piece.byteLength;
      if (pieces < PIECES_PER_PAUSE) continue;
      if (bytes < PIECES_PER_PAUSE * SMALL_BYTES) await pause(clock, PAUSE_MS);
      else await nextTurn();
      pieces = 0;
      bytes = 0;
    }
  } finally {
    onEnd();
  }
}

const PROGRESS_INTERVAL_MS = 30_000;
/** A kilobyte per second. */
const MIN_PROGRESS_BYTES = 30 * 1024;

/** Detects a body whose sender is too slow. Time during which the reader is busy does not count. */
export class ProgressWatch {
  readonly #clock: Clock;
  readonly #onSlow: () => void;
  #timer: Timer;
  #bytes = 0;
  #waitedMs = 0;
  #waitingSince: number | undefined;

  /** `onSlow` is called after each interval that was mostly spent waiting for less than a kilobyte per second. */
  constructor(clock: Clock, onSlow: () => void) {
    this.#clock = clock;
    this.#onSlow = onSlow;
    this.#timer = clock.after(PROGRESS_INTERVAL_MS, this.#check);
  }

  /** Yields the same body. */
  async *watch(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    this.#waitingSince = this.#clock.monotonic();
    for await (const piece of body) {
      this.#endWait();
      this.#bytes += piece.byteLength;
      yield piece;
      this.#waitingSince = this.#clock.monotonic();
    }
    this.stop();
  }

  readonly stop = (): void => this.#timer.cancel();

  readonly #check = (): void => {
    const isWaiting = this.#waitingSince !== undefined;
    this.#endWait();
    if (isWaiting) this.#waitingSince = this.#clock.monotonic();
    const isSlow = this.#waitedMs >= PROGRESS_INTERVAL_MS / 2 && this.#bytes < MIN_PROGRESS_BYTES;
    this.#bytes = 0;
    this.#waitedMs = 0;
    this.#timer = this.#clock.after(PROGRESS_INTERVAL_MS, this.#check);
    if (isSlow) this.#onSlow();
  };

  #endWait(): void {
    if (this.#waitingSince !== undefined) this.#waitedMs += this.#clock.monotonic() - this.#waitingSince;
    this.#waitingSince = undefined;
  }
}
