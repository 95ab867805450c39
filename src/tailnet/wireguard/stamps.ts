// Timestamps and indices of handshakes (facts/tailnet-peer 4).
import type { Clock } from "#base/clock.ts";
import { generateBytes } from "#base/ids.ts";

/** The TAI64 seconds of the start of 1970. */
const TAI64_EPOCH = 2n ** 62n + 10n;

/** Generates TAI64N timestamps: 12 bytes, big-endian, and strictly increasing even if the wall clock is not. */
export class Tai64n {
  readonly #clock: Clock;
  #last_ms = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  next(): Uint8Array {
    this.#last_ms = Math.max(this.#last_ms + 1, this.#clock.now());
    const out = new Uint8Array(12);
    const view = new DataView(out.buffer);
    view.setBigUint64(0, TAI64_EPOCH + BigInt(Math.floor(this.#last_ms / 1_000)));
    view.setUint32(8, (this.#last_ms % 1_000) * 1_000_000);
    return out;
  }
}

/** Returns a random 32-bit number that identifies a session. */
export const generateIndex = (): number => new DataView(generateBytes(4).buffer).getUint32(0);
