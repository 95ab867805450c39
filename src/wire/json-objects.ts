// Parses consecutive JSON objects in a byte stream, split at any point: the input of terminals (facts/platform 5.6). Rejects anything else,
// and objects beyond a limit.
import { parseJson } from "#base/json/read.ts";
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
    let from = 0;
    for (let at = 0; at < chunk.byteLength; at += 1) {
      if (this.#inText) {
        at = this.#findTextEnd(chunk, at);
        if (at === chunk.byteLength) break;
        this.#inText = false;
        continue;
      }
      const byte = chunk[at] as number;
      if (this.#depth === 0) {
        if (byte === OPEN) {
          this.#depth = 1;
          from = at;
        } else if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) throw toNotAnObjectError();
      } else if (byte === QUOTE) this.#inText = true;
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
   * Returns the position of the quote that ends the string, or the chunk's length. Searches for quotes only: the output of programs has an
   * escaped character in each line, and stopping at all of them takes most of the time.
   */
  #findTextEnd(chunk: Uint8Array, from: number): number {
    for (let end = chunk.indexOf(QUOTE, from); ; end = chunk.indexOf(QUOTE, end + 1)) {
      const isEscaped = this.#isEscaped(chunk, from, end < 0 ? chunk.byteLength : end);
      if (end < 0) {
        this.#escaped = isEscaped;
        return chunk.byteLength;
      }
      if (isEscaped) continue;
      this.#escaped = false;
      return end;
    }
  }

  /** Returns whether an odd number of backslashes is directly before `at`. `from`: where the string, or its part in this chunk, begins. */
  #isEscaped(chunk: Uint8Array, from: number, at: number): boolean {
    let first = at;
    while (first > from && chunk[first - 1] === ESCAPE) first -= 1;
    const isOdd = (at - first) % 2 === 1;
    return first === from && this.#escaped ? !isOdd : isOdd;
  }

  #appendPart(part: Uint8Array): void {
    this.#held += part.byteLength;
    if (this.#held > this.#limit) throw new WireError("too_large", `An object has more than ${this.#limit} bytes.`);
    this.#pending.push(part);
  }

  #finishObject(last: Uint8Array): Record<string, unknown> {
    this.#appendPart(last);
    const whole = this.#pending.length === 1 ? last : Buffer.concat(this.#pending);
    this.#pending = [];
    this.#held = 0;
    try {
      return parseJson(new TextDecoder("utf-8", { fatal: true }).decode(whole)) as Record<string, unknown>;
    } catch {
      throw toNotAnObjectError();
    }
  }
}

const toNotAnObjectError = (): WireError => new WireError("protocol", "Only JSON objects are allowed here.");
