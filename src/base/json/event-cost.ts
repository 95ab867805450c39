// Counts the values of each event of an event stream, on its bytes. The parser behind it joins the data lines of an event, so all lines of an
// event count together.
import { JsonCost, type JsonLimits } from "./cost.ts";

const NEWLINE = 10;
const RETURN = 13;

export class EventCost {
  readonly #cost: JsonCost;
  readonly #maxBytes: number;
  #bytes = 0;
  #largest = 0;
  /** The last byte, for lines that end with two. */
  #before = NEWLINE;
  /** Nothing has come since the last end of a line. */
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

  /** Bytes of the largest event of which the last piece contained a part; it may have ended in it. */
  get largest(): number {
    return this.#largest;
  }

  /** Takes the next bytes. Returns the problem as the end of "The answer ..."; undefined if none. */
  count(piece: Uint8Array): string | undefined {
    this.#largest = this.#bytes;
    for (let from = 0; from < piece.length; ) {
      const to = endOfLine(piece, from);
      if (to > from) {
        this.#isLineEmpty = false;
        this.#bytes += to - from;
        this.#largest = Math.max(this.#largest, this.#bytes);
        if (this.#bytes > this.#maxBytes) return `has an event with more than ${this.#maxBytes} bytes.`;
        const problem = this.#cost.count(piece.subarray(from, to));
        if (problem !== undefined) return problem;
        this.#before = piece[to - 1] as number;
      }
      if (to < piece.length) this.#endLine(piece[to] as number);
      from = to + 1;
    }
    return undefined;
  }

  #endLine(byte: number): void {
    const isSecondHalf = byte === NEWLINE && this.#before === RETURN;
    this.#before = byte;
    if (isSecondHalf) return;
    // A string can't contain the end of a line, so a quote in one line hides nothing in the next.
    if (this.#isLineEmpty) {
      this.#cost.reset();
      this.#bytes = 0;
    } else this.#cost.endString();
    this.#isLineEmpty = true;
  }
}

const endOfLine = (piece: Uint8Array, from: number): number => {
  for (let at = from; at < piece.length; at++) if (piece[at] === NEWLINE || piece[at] === RETURN) return at;
  return piece.length;
};
