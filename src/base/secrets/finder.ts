// Finds many known texts in one pass over another text. Pure.

/** A part of a text: from its first character to the one after its last. */
export type Span = { readonly from: number; readonly to: number };

/** Number of leading characters that select the candidates at a position; every text to find is at least this long. */
export const MIN_FOUND_CHARS = 8;
/** Size of the table that rules out most positions. */
const TABLE = 1 << 16;

export class TextFinder {
  /** The texts by their first characters, longest first. */
  readonly #byHead = new Map<string, string[]>();
  /** 1 if a text begins with characters of this hash. */
  readonly #heads = new Uint8Array(TABLE);
  #longest = 0;

  /** Shorter texts than `MIN_FOUND_CHARS` are not found. */
  constructor(texts: Iterable<string>) {
    for (const text of new Set(texts)) {
      if (text.length < MIN_FOUND_CHARS) continue;
      const head = text.slice(0, MIN_FOUND_CHARS);
      const same = this.#byHead.get(head);
      if (same) same.push(text);
      else this.#byHead.set(head, [text]);
      this.#heads[hashHead(text, 0)] = 1;
      this.#longest = Math.max(this.#longest, text.length);
    }
    for (const same of this.#byHead.values()) same.sort((a, b) => b.length - a.length);
  }

  /** Returns the longest known text at each position, in order; they may overlap. */
  findAll(text: string): Span[] {
    const found: Span[] = [];
    for (let from = 0; from + MIN_FOUND_CHARS <= text.length; from++) {
      const known = this.#listAt(text, from)?.find((one) => text.startsWith(one, from));
      if (known !== undefined) found.push({ from, to: from + known.length });
    }
    return found;
  }

  /** Returns the first position from which the rest of the text is only the beginning of a known text; the text's length if none is. */
  findOpenStart(text: string): number {
    const last = text.length - MIN_FOUND_CHARS;
    for (let at = Math.max(0, text.length - this.#longest + 1); at <= last; at++) {
      const left = text.length - at;
      const known = this.#listAt(text, at)?.find((one) => one.length > left && text.endsWith(one.slice(0, left)));
      if (known !== undefined) return at;
    }
    for (let at = Math.max(0, last + 1); at < text.length; at++) {
      const tail = text.slice(at);
      for (const head of this.#byHead.keys()) if (head.startsWith(tail)) return at;
    }
    return text.length;
  }

  #listAt(text: string, at: number): readonly string[] | undefined {
    return this.#heads[hashHead(text, at)] === 1 ? this.#byHead.get(text.slice(at, at + MIN_FOUND_CHARS)) : undefined;
  }
}

const hashHead = (text: string, at: number): number => {
  let number = 0;
  for (let i = 0; i < MIN_FOUND_CHARS; i++) number = (Math.imul(number, 31) + text.charCodeAt(at + i)) >>> 0;
  return (number ^ (number >>> 16)) & (TABLE - 1);
};
