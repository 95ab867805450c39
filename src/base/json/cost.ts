// Decides from the bytes of a JSON text whether it is too expensive to parse. JSON.parse is fast for long strings, but millions of small
// values take seconds of the event loop and gigabytes of memory, and a value with a hundred thousand levels cannot be serialized again.
// Applied to everything that comes from outside: requests (rule HT-6), answers, streams and messages (rule HT-48).

/** Shorter texts are never expensive, whatever they contain. */
export const CHEAP_BYTES = 1024;
/** Maximum members of one object. The largest maps in real requests have a few hundred. */
export const MAX_MEMBERS = 10_000;
/** Maximum values in all lists and objects together. The validator visits each value, even beyond a schema's limit for the list. */
export const MAX_VALUES = 100_000;
/** Maximum nesting depth. */
export const MAX_DEPTH = 1_000;
/**
 * Maximum mean nesting depth of a text with the maximum number of values. Error messages print an invalid body with that much indentation.
 */
const MAX_MEAN_DEPTH = 20;

/** Limits other than `MAX_VALUES` and `MAX_MEMBERS`. Commas and opening brackets are counted, each up to `maxValues`. */
export type JsonLimits = { readonly maxValues?: number; readonly maxMembers?: number };

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;

/** Counts the values and nesting levels of a text that arrives in pieces. */
export class JsonCost {
  readonly #maxValues: number;
  readonly #maxMembers: number;
  /** Maximum sum of the nesting depths of all values. */
  readonly #maxDepthSum: number;
  /** Member counts of the enclosing objects. */
  #outerMemberCounts: number[] = [];
  #openListCount = 0;
  #memberCount = 0;
  /** Each comma stands for a value after the first one of a list or object. */
  #commaCount = 0;
  /** Lists and objects. */
  #containerCount = 0;
  #depthSum = 0;
  #isInString = false;
  /** The last piece ended inside a string, with a backslash that escapes the next byte. */
  #isEscaped = false;

  constructor({ maxValues = MAX_VALUES, maxMembers = MAX_MEMBERS }: JsonLimits = {}) {
    this.#maxValues = maxValues;
    this.#maxMembers = maxMembers;
    this.#maxDepthSum = MAX_MEAN_DEPTH * Math.max(maxValues, MAX_VALUES);
  }

  /** Starts over for the next text. */
  reset(): void {
    this.#outerMemberCounts = [];
    this.#openListCount = 0;
    this.#memberCount = 0;
    this.#commaCount = 0;
    this.#containerCount = 0;
    this.#depthSum = 0;
    this.endString();
  }

  /** Ends an open string, as at the end of a line: the parser rejects such a text there. */
  endString(): void {
    this.#isInString = false;
    this.#isEscaped = false;
  }

  /** Counts the next bytes. Returns the problem as the end of "The answer ..."; undefined if none. The text may be invalid JSON. */
  count(bytes: Uint8Array): string | undefined {
    const end = bytes.length;
    if (end === 0) return undefined;
    for (let i = this.#isInString ? this.#findClosingQuote(bytes, 0) + 1 : 0; i < end; i++) {
      switch (bytes[i]) {
        case QUOTE:
          i = this.#findClosingQuote(bytes, i + 1);
          break;
        case COMMA:
          if (++this.#commaCount > this.#maxValues) return this.#describeTooManyValues();
          this.#depthSum += this.#depth;
          break;
        case COLON:
          if (++this.#memberCount > this.#maxMembers)
            return `has an object with more than ${this.#maxMembers} members.`;
          break;
        case OPEN_OBJECT:
          this.#outerMemberCounts.push(this.#memberCount);
          this.#memberCount = 0;
          if (++this.#containerCount > this.#maxValues) return this.#describeTooManyValues();
          this.#depthSum += this.#depth;
          if (this.#depth > MAX_DEPTH) return TOO_DEEP;
          break;
        case CLOSE_OBJECT:
          this.#memberCount = this.#outerMemberCounts.pop() ?? 0;
          break;
        case OPEN_LIST:
          this.#openListCount++;
          if (++this.#containerCount > this.#maxValues) return this.#describeTooManyValues();
          this.#depthSum += this.#depth;
          if (this.#depth > MAX_DEPTH) return TOO_DEEP;
          break;
        case CLOSE_LIST:
          if (this.#openListCount > 0) this.#openListCount--;
      }
      if (this.#depthSum > this.#maxDepthSum) return TOO_NESTED;
    }
    return undefined;
  }

  get #depth(): number {
    return this.#outerMemberCounts.length + this.#openListCount;
  }

  #describeTooManyValues(): string {
    return `has more than ${this.#maxValues} values.`;
  }

  /** Returns the position of the quote that ends the string that continues at `from`; the length if it ends in a later piece. */
  #findClosingQuote(bytes: Uint8Array, from: number): number {
    const start = this.#isEscaped ? from + 1 : from;
    this.endString();
    for (let index = bytes.indexOf(QUOTE, start); index >= 0; index = bytes.indexOf(QUOTE, index + 1)) {
      if (!isEscapedAt(bytes, index, start)) return index;
    }
    this.#isInString = true;
    this.#isEscaped = isEscapedAt(bytes, bytes.length, start);
    return bytes.length;
  }
}

const isEscapedAt = (bytes: Uint8Array, index: number, from: number): boolean => {
  let backslashCount = 0;
  while (index - 1 - backslashCount >= from && bytes[index - 1 - backslashCount] === BACKSLASH) backslashCount++;
  return backslashCount % 2 === 1;
};

/** Returns the problem of a complete text as the end of "The request body ..." or "The answer ..."; undefined if none. */
export const findCostProblem = (bytes: Uint8Array, limits?: JsonLimits): string | undefined =>
  bytes.length < CHEAP_BYTES ? undefined : new JsonCost(limits).count(bytes);

const TOO_NESTED = "has too many values that are nested deep.";
const TOO_DEEP = `is nested more than ${MAX_DEPTH} deep.`;
