// Counts the values in the bytes of each event of an event stream. The parser that reads the stream joins the data lines of an event, so
// all lines of an event count together.
import { JsonCost, type JsonLimits } from "./cost.ts";

const NEWLINE = 10;
const CARRIAGE_RETURN = 13;

export class EventCost {
  readonly #cost: JsonCost;
  readonly #maxBytes: number;
  #bytes = 0;
  #largest = 0;
  /** The previous byte, for lines that end with two bytes. */
  #lastByte = NEWLINE;
  /** No byte has followed the last line end. */
  #isLineEmpty = true;

  /** `maxBytes`: of one event. */
  constructor({ maxBytes, ...limits }: JsonLimits & { readonly maxBytes: number }) {
    this.#cost = new JsonCost(limits);
    this.#maxBytes = maxBytes;
  }

  /** Bytes of the current event. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Bytes of the largest event with a part in the last piece; the event may have ended there. */
  get largest(): number {
    return this.#largest;
  }

  /** Counts the next bytes. Returns the problem as the end of "The answer ..."; undefined if none. */
  count(piece: Uint8Array): string | undefined {
    this.#largest = this.#bytes;
    for (let start = 0; start < piece.length; ) {
      const end = findLineEnd(piece, start);
      if (end > start) {
        this.#isLineEmpty = false;
        this.#bytes += end - start;
        this.#largest = Math.max(this.#largest, this.#bytes);
        if (this.#bytes > this.#maxBytes) return `has an event with more than ${this.#maxBytes} bytes.`;
        const problem = this.#cost.count(piece.subarray(start, end));
        if (problem !== undefined) return problem;
        this.#lastByte = piece[end - 1] as number;
      }
      if (end < piece.length) this.#endLine(piece[end] as number);
      start = end + 1;
    }
    return undefined;
  }

  #endLine(byte: number): void {
    const isSecondHalf = byte === NEWLINE && this.#lastByte === CARRIAGE_RETURN;
    this.#lastByte = byte;
    if (isSecondHalf) return;
    // A string can't contain the end of a line, so a quote in one line hides nothing in the next.
    if (this.#isLineEmpty) {
      this.#cost.reset();
      this.#bytes = 0;
    } else this.#cost.endString();
    this.#isLineEmpty = true;
  }
}

const findLineEnd = (piece: Uint8Array, start: number): number => {
  for (let index = start; index < piece.length; index++)
    if (piece[index] === NEWLINE || piece[index] === CARRIAGE_RETURN) return index;
  return piece.length;
};
