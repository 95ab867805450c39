// Limits how many values a message of a coding agent may have. The limit on bytes is not enough: 28 MB of small list items take seconds of
// the event loop to parse, check and compare. Values are counted on the bytes, before anything is parsed.

/** Values of all lists and objects of a message. Genuine agents send some hundred; the arguments of a call are shown up to 20,000. */
const MAX_MESSAGE_VALUES = 50_000;

const NEWLINE = 0x0a;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_LIST = 0x5b;
const OPEN_OBJECT = 0x7b;

export class TooManyValuesError extends Error {
  constructor() {
    super(`It sent a message with more than ${MAX_MESSAGE_VALUES.toLocaleString("en")} values, which is the limit.`);
  }
}

/** Counts the values of each line of a stream of JSON lines. */
export class ValueCounter {
  #values = 0;
  #isInString = false;
  #isEscaped = false;

  /** Counts the next bytes of the stream. Throws `TooManyValuesError` when a line has more values than the limit. */
  count(bytes: Uint8Array): void {
    for (const byte of bytes) {
      // A raw newline can't be part of a JSON string, so a line that ends inside one doesn't hide the next.
      if (byte === NEWLINE) {
        this.#values = 0;
        this.#isInString = false;
        this.#isEscaped = false;
      } else if (this.#isEscaped) this.#isEscaped = false;
      else if (this.#isInString) {
        if (byte === QUOTE) this.#isInString = false;
        else if (byte === BACKSLASH) this.#isEscaped = true;
      } else if (byte === QUOTE) this.#isInString = true;
      else if (byte === COMMA || byte === OPEN_LIST || byte === OPEN_OBJECT) this.#values += 1;
      if (this.#values > MAX_MESSAGE_VALUES) throw new TooManyValuesError();
    }
  }
}
