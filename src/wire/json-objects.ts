// Parses consecutive JSON objects in a byte stream, split at any point: the input of terminals (facts/platform 5.6). Rejects anything else,
// and objects beyond a limit.
import { WireError } from "./wire-error.ts";

const OPEN = 0x7b;
const CLOSE = 0x7d;
const QUOTE = 0x22;
const ESCAPE = 0x5c;

export class JsonObjects {
  readonly #limit: number;
  #pending: Uint8Array[] = [];
  #held = 0;
  #depth = 0;
  #inText = false;
  #escaped = false;

  /** `limit`: maximum size of one object in bytes. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Returns the objects that end in this chunk. Throws WireError `protocol` or `too_large`; the parser is unusable after that. */
  push(chunk: Uint8Array): Record<string, unknown>[] {
    const found: Record<string, unknown>[] = [];
    const quoteFrom = finder(chunk, QUOTE);
    const escapeFrom = finder(chunk, ESCAPE);
    let from = 0;
    for (let at = 0; at < chunk.byteLength; at += 1) {
      // Most bytes are inside strings, so the end of a string is searched for instead of stepping through it.
      if (this.#inText && !this.#escaped) at = Math.min(quoteFrom(at), escapeFrom(at));
      if (at === chunk.byteLength) break;
      const byte = chunk[at] as number;
      if (this.#depth === 0) {
        if (byte === OPEN) {
          this.#depth = 1;
          from = at;
        } else if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) throw nonsense();
        continue;
      }
      this.#step(byte);
      if (this.#depth === 0) {
        found.push(this.#take(chunk.subarray(from, at + 1)));
        from = at + 1;
      }
    }
    if (this.#depth > 0) this.#keep(chunk.slice(from));
    return found;
  }

  #step(byte: number): void {
    if (this.#escaped) this.#escaped = false;
    else if (this.#inText) {
      if (byte === ESCAPE) this.#escaped = true;
      else if (byte === QUOTE) this.#inText = false;
    } else if (byte === QUOTE) this.#inText = true;
    else if (byte === OPEN) this.#depth += 1;
    else if (byte === CLOSE) this.#depth -= 1;
  }

  #keep(part: Uint8Array): void {
    this.#held += part.byteLength;
    if (this.#held > this.#limit) throw new WireError("too_large", `An object has more than ${this.#limit} bytes.`);
    this.#pending.push(part);
  }

  #take(last: Uint8Array): Record<string, unknown> {
    this.#keep(last);
    const whole = this.#pending.length === 1 ? last : Buffer.concat(this.#pending);
    this.#pending = [];
    this.#held = 0;
    try {
      return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(whole)) as Record<string, unknown>;
    } catch {
      throw nonsense();
    }
  }
}

/**
 * Returns a function that finds the next occurrence of a byte, or the length if none exists. With increasing positions, each byte is
 * inspected once.
 */
const finder = (chunk: Uint8Array, byte: number): ((from: number) => number) => {
  let found = -1;
  return (from) => {
    if (found < from) {
      const at = chunk.indexOf(byte, from);
      found = at < 0 ? chunk.byteLength : at;
    }
    return found;
  };
};

const nonsense = (): WireError => new WireError("protocol", "Only JSON objects are allowed here.");
