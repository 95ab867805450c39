// Masks the provider's key in a streamed response, however the stream is split, and also if its letters have the other case, JSON escapes
// some of its characters, or a URL encodes them, such as `%2D`. The length does not change. Pure.

/** Shorter keys could match by accident. */
const MIN_KEY_BYTES = 8;
const STAR = 0x2a;
const SLASH = 0x2f;
const BACKSLASH = 0x5c;
const LETTER_U = 0x75;
const PERCENT = 0x25;
const CASE_BIT = 0x20;
/** JSON within JSON doubles the backslashes of an escape. */
const MAX_BACKSLASHES = 8;
const HEX_DIGITS = 4;

export class KeyMask {
  readonly #key: Buffer;
  /** Trailing bytes that may be the start of the key. */
  #heldBytes = Buffer.alloc(0);

  constructor(key: string) {
    this.#key = Buffer.from(key);
  }

  /** Returns the bytes to pass on: everything except a possible start of the key. */
  read(piece: Uint8Array): Uint8Array {
    if (this.#key.length < MIN_KEY_BYTES || piece.length === 0) return piece;
    const view = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
    let bytes = this.#heldBytes.length > 0 ? Buffer.concat([this.#heldBytes, view]) : view;
    const [first = 0] = this.#key;
    let passing = 0;
    while (passing < bytes.length) {
      const byte = bytes[passing] ?? 0;
      const isCandidate = byte === BACKSLASH || byte === PERCENT || isSameLetter(byte, first);
      const end = isCandidate ? this.#findKeyEnd(bytes, passing) : undefined;
      if (end === "open") break;
      if (end === undefined) {
        passing++;
        continue;
      }
      // The buffer is shared, so it is copied before it is changed.
      if (bytes === view) bytes = Buffer.from(view);
      bytes.fill(STAR, passing, end);
      passing = end;
    }
    this.#heldBytes = Buffer.from(bytes.subarray(passing));
    return bytes.subarray(0, passing);
  }

  /** Returns held-back bytes at the end of the response. */
  end(): Uint8Array {
    const held = this.#heldBytes;
    this.#heldBytes = Buffer.alloc(0);
    return held;
  }

  /** Returns the end of a key that starts at `from`; "open" if more bytes are needed; undefined if there is no key. */
  #findKeyEnd(bytes: Buffer, from: number): number | "open" | undefined {
    let at = from;
    for (const wanted of this.#key) {
      if (at === bytes.length) return "open";
      const end = isSameLetter(bytes[at] ?? 0, wanted) ? at + 1 : findEscapeEnd(bytes, at, wanted);
      if (typeof end !== "number") return end;
      at = end;
    }
    return at;
  }
}

/** The same byte, or the same letter of the other case. */
const isSameLetter = (byte: number, wanted: number): boolean => {
  if (byte === wanted) return true;
  const small = byte | CASE_BIT;
  return small === (wanted | CASE_BIT) && small >= 0x61 && small <= 0x7a;
};

/** The same for one byte that is written as an escape: `\u002f`, `\/` or `%2f`. */
const findEscapeEnd = (bytes: Buffer, from: number, wanted: number): number | "open" | undefined => {
  if (bytes[from] === PERCENT) return findDigitsEnd(bytes, from + 1, { wanted, count: 2 });
  let at = from;
  while (bytes[at] === BACKSLASH && at - from <= MAX_BACKSLASHES) at++;
  if (at === from || at - from > MAX_BACKSLASHES) return undefined;
  if (at === bytes.length) return "open";
  if (bytes[at] === SLASH && wanted === SLASH) return at + 1;
  if (bytes[at] !== LETTER_U) return undefined;
  return findDigitsEnd(bytes, at + 1, { wanted, count: HEX_DIGITS });
};

const findDigitsEnd = (
  bytes: Buffer,
  from: number,
  { wanted, count }: { readonly wanted: number; readonly count: number },
): number | "open" | undefined => {
  const digits = bytes.toString("latin1", from, from + count).toLowerCase();
  const isLetter = (wanted | CASE_BIT) >= 0x61 && (wanted | CASE_BIT) <= 0x7a;
  const candidates = isLetter ? [wanted, wanted ^ CASE_BIT] : [wanted];
  if (!candidates.some((one) => one.toString(16).padStart(count, "0").startsWith(digits))) return undefined;
  return digits.length < count ? "open" : from + count;
};
