// Parses the search language of all `q` parameters (facts/platform 3.3): words, and `key:value` terms whose values can be quoted. A list
// reads the keys that it supports and then calls `requireValid`, which reports all mistakes together. Pure.
import { invalid, type Validation } from "./errors.ts";
import { isUuid } from "./ids.ts";

type Term = {
  readonly key: string;
  readonly value: string;
  /** The value has a colon outside quotes, which is allowed only in times. */
  readonly hasColon: boolean;
};

const TRUE = ["1", "t", "true"];
const FALSE = ["0", "f", "false"];
const TIME = /^\d{4}-\d{2}-\d{2}t\d{2}:\d{2}:\d{2}(\.\d{1,9})?(z|[+-]\d{2}:\d{2})$/;

export class SearchQuery {
  /** The words without a key, joined by spaces, in lower case. */
  readonly free: string;
  readonly #terms: readonly Term[];
  readonly #readKeys = new Set<string>();
  readonly #problems: Validation[] = [];

  constructor(text: string) {
    const { words, areQuotesClosed } = splitQuery(text.toLowerCase());
    if (!areQuotesClosed) this.addProblem("q", "A quote is not closed.");
    const terms: Term[] = [];
    const freeWords: string[] = [];
    for (const word of words) {
      const colon = word.colons[0];
      if (colon === undefined) freeWords.push(word.text);
      else if (colon === 0) this.addProblem("q", `"${word.text}" begins with a colon.`);
      else if (colon === word.text.length - 1 && !word.isQuoted)
        this.addProblem("q", `"${word.text}" ends with a colon.`);
      else if (colon === word.text.length - 1)
        this.addProblem(word.text.slice(0, -1), "There is nothing to search for.");
      else {
        const hasColon = word.colons.length > 1;
        terms.push({ key: word.text.slice(0, colon), value: word.text.slice(colon + 1), hasColon });
      }
    }
    this.#terms = terms;
    this.free = freeWords.join(" ").trim();
  }

  /** Returns whether the search has the key, with any value. */
  has(key: string): boolean {
    return this.#listTerms(key).length > 0;
  }

  /** Returns the single value of a key; undefined if absent or empty. */
  text(key: string): string | undefined {
    const [term] = this.#listSingle(key);
    return term === undefined || this.#rejectColon(term) ? undefined : term.value || undefined;
  }

  /** Returns all values of a key that can be repeated or contain a comma-separated list. */
  list(key: string): string[] {
    const terms = this.#listTerms(key).filter((term) => !this.#rejectColon(term));
    return terms.flatMap((term) => term.value.split(",").map((one) => one.trim())).filter((one) => one !== "");
  }

  /** Returns a list whose values are all in `allowed`. */
  choices<T extends string>(key: string, allowed: readonly T[]): T[] {
    return this.list(key).filter((value): value is T => {
      const isKnown = (allowed as readonly string[]).includes(value);
      if (!isKnown) this.addProblem(key, `"${value}" is not one of ${allowed.join(", ")}.`);
      return isKnown;
    });
  }

  /** Returns one value of `allowed`. */
  choice<T extends string>(key: string, allowed: readonly T[]): T | undefined {
    return this.#requireOne(key, this.choices(key, allowed));
  }

  uuid(key: string): string | undefined {
    return this.#requireOne(key, this.uuids(key));
  }

  flag(key: string): boolean | undefined {
    const value = this.text(key);
    if (value === undefined) return undefined;
    if (!TRUE.includes(value) && !FALSE.includes(value)) this.addProblem(key, `"${value}" is not true or false.`);
    return TRUE.includes(value);
  }

  /** Returns a non-negative integer. */
  integer(key: string): number | undefined {
    const value = this.text(key);
    if (value === undefined) return undefined;
    if (/^\d{1,15}$/.test(value)) return Number(value);
    this.addProblem(key, `"${value}" is not a whole number.`);
    return undefined;
  }

  /** Returns an RFC 3339 time, quoted or bare, as milliseconds since 1970. */
  time(key: string): number | undefined {
    const [term] = this.#listSingle(key);
    if (term === undefined) return undefined;
    const time = TIME.test(term.value) ? Date.parse(term.value.toUpperCase()) : Number.NaN;
    if (!Number.isNaN(time)) return time;
    this.addProblem(key, `"${term.value}" is not a time such as 2026-01-31T12:00:00Z.`);
    return undefined;
  }

  /** Returns a list of UUIDs. */
  uuids(key: string): string[] {
    return this.list(key).filter((value) => {
      if (!isUuid(value)) this.addProblem(key, `"${value}" is not a UUID.`);
      return isUuid(value);
    });
  }

  /** Returns the free text as `name` or `owner/name`. */
  ownerAndName(): { owner?: string; name?: string } {
    const parts = this.free.split("/");
    if (parts.length > 2) this.addProblem("q", "The free text has more than one slash; write owner/name.");
    const [first = "", second] = parts;
    const pair = second === undefined ? { name: first } : { owner: first, name: second };
    return Object.fromEntries(Object.entries(pair).filter(([, value]) => value !== ""));
  }

  /** Records a mistake. Callers use it for mistakes that only they can detect, such as an unknown name. */
  addProblem(key: string, detail: string): void {
    this.#problems.push({ field: key, detail });
  }

  /** Throws 400 with one validation per mistake, including keys that were never read. */
  requireValid(message: string): void {
    const unknown = this.#terms.map((term) => term.key).filter((key) => !this.#readKeys.has(key));
    const knownKeys = [...this.#readKeys].join(", ");
    for (const key of new Set(unknown)) this.addProblem(key, `This key is unknown. Known keys are ${knownKeys}.`);
    if (this.#problems.length > 0) throw invalid(message, this.#problems);
  }

  #listTerms(key: string): readonly Term[] {
    this.#readKeys.add(key);
    return this.#terms.filter((term) => term.key === key);
  }

  #listSingle(key: string): readonly Term[] {
    const terms = this.#listTerms(key);
    if (terms.length > 1) this.addProblem(key, "This key can be given only once.");
    return terms;
  }

  /** Rejects several values instead of using the first, which would return results that the caller did not request. */
  #requireOne<T>(key: string, values: readonly T[]): T | undefined {
    if (this.#listSingle(key).length === 1 && values.length > 1) this.addProblem(key, "This key takes one value.");
    return values[0];
  }

  #rejectColon(term: Term): boolean {
    if (term.hasColon) this.addProblem(term.key, "The value has a colon; put it into double quotes.");
    return term.hasColon;
  }
}

/** A word without its quotes; `\"` inside quotes is a quote character. `colons` are the positions of colons outside quotes. */
type QueryWord = { text: string; colons: number[]; isQuoted: boolean };

const splitQuery = (text: string): { words: QueryWord[]; areQuotesClosed: boolean } => {
  const words: QueryWord[] = [];
  let word: QueryWord | undefined;
  let isInQuotes = false;
  let isEscaped = false;
  for (const char of text) {
    if (isEscaped && word) {
      word.text += char === '"' ? char : `\\${char}`;
      isEscaped = false;
      continue;
    }
    if (isInQuotes && char === "\\") {
      isEscaped = true;
      continue;
    }
    if (!isInQuotes && /\s/.test(char)) {
      word = undefined;
      continue;
    }
    if (!word) {
      word = { text: "", colons: [], isQuoted: false };
      words.push(word);
    }
    if (char === '"') {
      isInQuotes = !isInQuotes;
      word.isQuoted = true;
    } else {
      if (char === ":" && !isInQuotes) word.colons.push(word.text.length);
      word.text += char;
    }
  }
  return { words, areQuotesClosed: !isInQuotes };
};
