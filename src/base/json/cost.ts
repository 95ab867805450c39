// Checks whether a JSON text is too expensive to parse, on its bytes. JSON.parse is fast for long strings, but millions of small values take
// seconds of the event loop and gigabytes of memory, and a value with a hundred thousand levels cannot be serialized again. Applied to
// everything that comes from outside: requests (rule HT-6), answers, streams and messages (rule HT-48).

/** Shorter texts are never expensive, whatever they contain. */
export const CHEAP_BYTES = 1024;
/** Maximum members of one object. The largest maps in real requests have a few hundred. */
export const MAX_MEMBERS = 10_000;
/** Maximum values in all lists and objects together. The validator visits each value, even beyond a schema's limit for the list. */
export const MAX_VALUES = 100_000;
/** Maximum nesting depth. */
export const MAX_DEPTH = 1_000;
/** Maximum mean of the nesting depths of as many values as are allowed. Error messages print an invalid body with that much indentation. */
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

/** Counts what is in a text that arrives in pieces. */
export class JsonCost {
  readonly #maxValues: number;
  readonly #maxMembers: number;
  /** Maximum sum of the nesting depths of all values. */
  readonly #maxLevels: number;
  /** Member counts of the enclosing objects. */
  #outer: number[] = [];
  #lists = 0;
  #members = 0;
  /** Values after the first one of a list or object. */
  #commas = 0;
  /** Lists and objects. */
  #opened = 0;
  #levels = 0;
  #isInString = false;
  /** The last piece ended inside a string, with a backslash that escapes the next byte. */
  #isEscaped = false;

  constructor({ maxValues = MAX_VALUES, maxMembers = MAX_MEMBERS }: JsonLimits = {}) {
    this.#maxValues = maxValues;
    this.#maxMembers = maxMembers;
    this.#maxLevels = MAX_MEAN_DEPTH * Math.max(maxValues, MAX_VALUES);
  }

  /** Forgets everything, for the next text. */
  reset(): void {
    this.#outer = [];
    this.#lists = 0;
    this.#members = 0;
    this.#commas = 0;
    this.#opened = 0;
    this.#levels = 0;
    this.endString();
  }

  /** Says that an open string ends here, as at the end of a line: the parser rejects such a text at this place. */
  endString(): void {
    this.#isInString = false;
    this.#isEscaped = false;
  }

  /** Counts the next bytes. Returns the problem as the end of "The answer ..."; undefined if none. The text may be invalid JSON. */
  count(text: Uint8Array): string | undefined {
    const end = text.length;
    if (end === 0) return undefined;
    for (let i = this.#isInString ? this.#closingQuote(text, 0) + 1 : 0; i < end; i++) {
      switch (text[i]) {
        case QUOTE:
          i = this.#closingQuote(text, i + 1);
          break;
        case COMMA:
          if (++this.#commas > this.#maxValues) return this.#tooMany();
          this.#levels += this.#depth;
          break;
        case COLON:
          if (++this.#members > this.#maxMembers) return `has an object with more than ${this.#maxMembers} members.`;
          break;
        case OPEN_OBJECT:
          this.#outer.push(this.#members);
          this.#members = 0;
          if (++this.#opened > this.#maxValues) return this.#tooMany();
          this.#levels += this.#depth;
          if (this.#depth > MAX_DEPTH) return TOO_DEEP;
          break;
        case CLOSE_OBJECT:
          this.#members = this.#outer.pop() ?? 0;
          break;
        case OPEN_LIST:
          this.#lists++;
          if (++this.#opened > this.#maxValues) return this.#tooMany();
          this.#levels += this.#depth;
          if (this.#depth > MAX_DEPTH) return TOO_DEEP;
          break;
        case CLOSE_LIST:
          if (this.#lists > 0) this.#lists--;
      }
      if (this.#levels > this.#maxLevels) return TOO_NESTED;
    }
    return undefined;
  }

  get #depth(): number {
    return this.#outer.length + this.#lists;
  }

  #tooMany(): string {
    return `has more than ${this.#maxValues} values.`;
  }

  /** Returns the position of the quote that ends the string whose text continues at `from`; the length if it ends in a later piece. */
  #closingQuote(text: Uint8Array, from: number): number {
    const begin = this.#isEscaped ? from + 1 : from;
    this.endString();
    for (let at = text.indexOf(QUOTE, begin); at >= 0; at = text.indexOf(QUOTE, at + 1)) {
      if (!isEscapedAt(text, at, begin)) return at;
    }
    this.#isInString = true;
    this.#isEscaped = isEscapedAt(text, text.length, begin);
    return text.length;
  }
}

const isEscapedAt = (text: Uint8Array, at: number, from: number): boolean => {
  let backslashes = 0;
  while (at - 1 - backslashes >= from && text[at - 1 - backslashes] === BACKSLASH) backslashes++;
  return backslashes % 2 === 1;
};

/** Returns the problem of a whole text as the end of "The request body ..." or "The answer ..."; undefined if none. */
export const tooCostly = (text: Uint8Array, limits?: JsonLimits): string | undefined =>
  text.length < CHEAP_BYTES ? undefined : new JsonCost(limits).count(text);

const TOO_NESTED = "has too many values that are nested deep.";
const TOO_DEEP = `is nested more than ${MAX_DEPTH} deep.`;
