// Checks whether a JSON text is too expensive to parse. JSON.parse is fast for long strings and lists, but an object with hundreds
// of thousands of distinct keys blocks the event loop for a quarter of a second, and a value with a hundred thousand levels cannot be
// serialized again. Applied to request bodies (rule HT-6) and to responses of workspaces and MCP servers.

/** Shorter texts are never expensive, whatever they contain. */
export const CHEAP_BYTES = 1024;
/** Maximum members of one object. The largest maps in real requests have a few hundred. */
export const MAX_MEMBERS = 10_000;
/** Maximum values in all lists and objects together. The validator visits each value, even beyond a schema's limit for the list. */
export const MAX_VALUES = 100_000;
/** Maximum nesting depth. */
export const MAX_DEPTH = 1_000;
/** Maximum sum of the nesting depths of all values. Error messages print an invalid body with that much indentation. */
export const MAX_LEVELS = 2_000_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;

/** Returns the problem as the end of "The request body ..." or "The answer ..."; undefined if none. The text may be invalid JSON. */
export const tooCostly = (text: Uint8Array): string | undefined => {
  if (text.length < CHEAP_BYTES) return undefined;
  /** Member counts of the enclosing objects. */
  const outer: number[] = [];
  let lists = 0;
  let members = 0;
  let values = 0;
  let levels = 0;
  const end = text.length;
  for (let i = 0; i < end; i++) {
    switch (text[i]) {
      case QUOTE:
        i = closingQuote(text, i + 1);
        break;
      case COMMA:
        if (++values > MAX_VALUES) return `has more than ${MAX_VALUES} values.`;
        levels += outer.length + lists;
        break;
      case COLON:
        if (++members > MAX_MEMBERS) return `has an object with more than ${MAX_MEMBERS} members.`;
        break;
      case OPEN_OBJECT:
        outer.push(members);
        members = 0;
        levels += outer.length + lists;
        if (outer.length + lists > MAX_DEPTH) return TOO_DEEP;
        break;
      case CLOSE_OBJECT:
        members = outer.pop() ?? 0;
        break;
      case OPEN_LIST:
        levels += outer.length + ++lists;
        if (outer.length + lists > MAX_DEPTH) return TOO_DEEP;
        break;
      case CLOSE_LIST:
        if (lists > 0) lists--;
    }
    if (levels > MAX_LEVELS) return TOO_NESTED;
  }
  return undefined;
};

const TOO_NESTED = "has too many values that are nested deep.";
const TOO_DEEP = `is nested more than ${MAX_DEPTH} deep.`;

/** Returns the position of the quote that ends the string beginning at `from`. */
const closingQuote = (text: Uint8Array, from: number): number => {
  for (let at = text.indexOf(QUOTE, from); at >= 0; at = text.indexOf(QUOTE, at + 1)) {
    let backslashes = 0;
    while (at - 1 - backslashes >= from && text[at - 1 - backslashes] === BACKSLASH) backslashes++;
    if (backslashes % 2 === 0) return at;
  }
  return text.length;
};
