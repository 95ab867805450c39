// Parses consecutive JSON objects in a byte stream, whose chunks may be split at any byte. Used for the input of terminals (facts/platform
// 5.6). Rejects any other data, and objects beyond a size limit.
import { parseJson } from "#base/json/read.ts";
import { WireError } from "./wire-error.ts";

const OPEN = 0x7b;
const CLOSE = 0x7d;
const QUOTE = 0x22;
const ESCAPE = 0x5c;

export class JsonObjects {
  readonly #limit: number;
  #pending: Uint8Array[] = [];
  #pendingBytes = 0;
  #depth = 0;
  #isInString = false;
  /** Whether the last chunk ended in a string, directly after the backslash of an escape. */
  #endsWithEscape = false;

  /** `limit`: maximum size of one object in bytes. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Returns the objects that end in this chunk. Throws WireError `protocol` or `too_large`; the parser is unusable after that. */
  push(chunk: Uint8Array): Record<string, unknown>[] {
    const found: Record<string, unknown>[] = [];
    let from = 0;
    for (let at = 0; at < chunk.byteLength; at += 1) {
      if (this.#isInString) {
        at = this.#findStringEnd(chunk, at);
        if (at === chunk.byteLength) break;
        this.#isInString = false;
        continue;
      }
      const byte = chunk[at] as number;
      if (this.#depth === 0) {
        if (byte === OPEN) {
          this.#depth = 1;
          from = at;
        } else if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) throw toNotAnObjectError();
      } else if (byte === QUOTE) this.#isInString = true;
      else if (byte === OPEN) this.#depth += 1;
      else if (byte === CLOSE) this.#depth -= 1;
      if (this.#depth === 0 && byte === CLOSE) {
        found.push(this.#finishObject(chunk.subarray(from, at + 1)));
        from = at + 1;
      }
    }
    if (this.#depth > 0) this.#appendPart(chunk.slice(from));
    return found;
  }

  /**
   * Returns the position of the quote that ends the string, or the chunk's length. Searches only for quotes, and not for the backslashes of
   * escapes, because text often has an escape in each line, and stopping at each one takes most of the time.
   */
  #findStringEnd(chunk: Uint8Array, from: number): number {
    for (let end = chunk.indexOf(QUOTE, from); ; end = chunk.indexOf(QUOTE, end + 1)) {
      const isEscaped = this.#isEscaped(chunk, from, end < 0 ? chunk.byteLength : end);
      if (end < 0) {
        this.#endsWithEscape = isEscaped;
        return chunk.byteLength;
      }
      if (isEscaped) continue;
      this.#endsWithEscape = false;
      return end;
    }
  }

  /**
   * Returns whether an odd number of backslashes is directly before `at`. `from`: the start of the string, or of its part in this chunk.
   */
  #isEscaped(chunk: Uint8Array, from: number, at: number): boolean {
    let first = at;
    while (first > from && chunk[first - 1] === ESCAPE) first -= 1;
    const isOdd = (at - first) % 2 === 1;
    return first === from && this.#endsWithEscape ? !isOdd : isOdd;
  }

  #appendPart(part: Uint8Array): void {
    this.#pendingBytes += part.byteLength;
    if (this.#pendingBytes > this.#limit)
      throw new WireError("too_large", `An object has more than ${this.#limit} bytes.`);
    this.#pending.push(part);
  }

  #finishObject(last: Uint8Array): Record<string, unknown> {
    this.#appendPart(last);
    const whole = this.#pending.length === 1 ? last : Buffer.concat(this.#pending);
    this.#pending = [];
    this.#pendingBytes = 0;
    try {
      return parseJson(new TextDecoder("utf-8", { fatal: true }).decode(whole)) as Record<string, unknown>;
    } catch {
      throw toNotAnObjectError();
    }
  }
}

const toNotAnObjectError = (): WireError => new WireError("protocol", "Only JSON objects are allowed here.");
