// Takes the provider's key out of an answer while its bytes pass, however they are cut. The length stays. Pure.

/** What is shorter could stand anywhere. */
const MIN_KEY_BYTES = 8;
const STAR = 0x2a;

export class KeyMask {
  readonly #key: Buffer;
  /** The end of what has come, as long as the key may begin there. */
  #held = Buffer.alloc(0);

  constructor(key: string) {
    this.#key = Buffer.from(key);
  }

  /** Returns what passes of these bytes: all but what may be the beginning of the key. */
  read(piece: Uint8Array): Uint8Array {
    const key = this.#key;
    if (key.length < MIN_KEY_BYTES || piece.length === 0) return piece;
    const view = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
    let bytes = this.#held.length > 0 ? Buffer.concat([this.#held, view]) : view;
    let at = bytes.indexOf(key);
    // Others hold the same bytes.
    if (at >= 0 && bytes === view) bytes = Buffer.from(view);
    for (; at >= 0; at = bytes.indexOf(key, at)) bytes.fill(STAR, at, at + key.length);
    const passing = bytes.length - this.#beginningAtEnd(bytes);
    this.#held = Buffer.from(bytes.subarray(passing));
    return bytes.subarray(0, passing);
  }

  /** Returns what was held back, at the end of the answer. */
  end(): Uint8Array {
    const held = this.#held;
    this.#held = Buffer.alloc(0);
    return held;
  }

  /** How many bytes at the end are the first ones of the key. */
  #beginningAtEnd(bytes: Buffer): number {
    const key = this.#key;
    for (let size = Math.min(key.length - 1, bytes.length); size > 0; size--) {
      if (bytes.compare(key, 0, size, bytes.length - size) === 0) return size;
    }
    return 0;
  }
}
