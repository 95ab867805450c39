// How much work a JSON text is before it is parsed. JSON.parse is quick with long strings and long lists, but an object with hundreds
// of thousands of different names holds the event loop for a quarter of a second, and what is nested a hundred thousand deep cannot be
// written again. Bodies of requests (rule HT-6), and answers of workspaces and of MCP servers that are such, are refused.

/** Texts shorter than this cannot hold enough to matter, however deep it is. */
export const CHEAP_BYTES = 1024;
/** Members of one object; the largest maps that callers send have some hundreds. */
export const MAX_MEMBERS = 10_000;
/** Maximum values in all lists and objects together. Validating each blocks the event loop, even when a list may only have a hundred. */
export const MAX_VALUES = 100_000;
/** Maximum nesting depth. */
export const MAX_DEPTH = 1_000;
/** The levels at which the values stand, added up: a body that does not fit is written out with as many spaces for a message. */
export const MAX_LEVELS = 2_000_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;

/** What is wrong with the text, to finish the sentence "The request body ..." or "The answer ..."; undefined when nothing is. It need not be valid. */
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
