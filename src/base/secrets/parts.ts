// Lists the parts of a secret that are secrets on their own: the lines of a key, the values of a configuration file. Programs show them
// without the rest: with line numbers, in diffs, by `head` or `grep`. Ordinary lines, which other texts contain too, are left out. Pure.
import { tryParseJson } from "../json/read.ts";

/** Shorter parts could match by accident. */
const MIN_PART_CHARS = 8;
/** A line of ordinary words that is shorter could be in any text, such as `import os`; and so could a longer single word. */
const MIN_WORDS_CHARS = 12;
const MIN_WORD_CHARS = 20;
/** Maximum depth of values in JSON. */
const MAX_DEPTH = 16;

/** Line ends, also as JSON and programs escape them. */
const LINE_END = /\r\n|\r|\n|(?:\\{1,8}r)?\\{1,8}n/;
const PEM_BORDER = /-----(BEGIN|END) [A-Z0-9 ]+-----/;
/** What precedes the content of a line: marks of comments, lists and diffs, and commands that set a variable. */
const LINE_START = /^(?:(?:[-+*>;]|\/\/|export|set|setenv|ENV)\s+|#+\s*)+/;
/** `name: value`, `name=value` or `"name": "value"`. */
const NAMED_VALUE = /^["']?([\w.:/@-]*?[\w.@-])["']?\s*(?:=>?|:=?(?=\s|["'[{]|$))\s*(.*)$/s;
const TAGGED_VALUE = /^<([\w:.-]+)(?:\s[^<>]*)?>([^<>]*)<\/[\w:.-]+>$/;
/** A lone tag, the header of a section, the first line of a script, or punctuation. */
const STRUCTURE = /^(?:<[^<>]*>|\[[^\]=]*\]|#!.*|\W*)$/;
/** Names of values that are secrets whatever they look like. */
const SECRET_NAME = /pass|pwd|secret|token|key|cred|auth|cookie|session|private|salt|signature|(?:^|_)pin(?:$|_)/i;
const PLAIN_URL = /^[a-z][a-z0-9+.-]*:\/\/[^\s@]*$/i;
const URL_WITH_PASSWORD = /:\/\/[^/\s:@]*:[^/\s@]+@/;
/** Letters and digits as in words, names and numbers: `production`, `apiVersion2`, `20240131`. */
const ORDINARY_RUN = /^(?:(?:[a-z]{2,}(?![a-z])|[A-Z]+(?![A-Z]))+\d{0,2}|\d{1,9})$/;

/** Returns the lines and values that must not be shown without the rest. Does not contain the secret itself. */
export const listSecretParts = (secret: string): string[] => {
  const found = new Set<string>();
  if (/^\s*[[{"]/.test(secret)) addJson(secret, found);
  addLines(secret, found);
  found.delete(secret);
  return [...found];
};

const addJson = (text: string, found: Set<string>): void => {
  const addTexts = (value: unknown, name: string, depth: number): void => {
    if (typeof value === "string") {
      addValue(name, value, found);
      addLines(value, found);
    }
    if (typeof value !== "object" || value === null || depth === MAX_DEPTH) return;
    const isList = Array.isArray(value);
    for (const [key, inner] of Object.entries(value)) addTexts(inner, isList ? name : key, depth + 1);
  };
  addTexts(tryParseJson(text), "", 0);
};

const addLines = (text: string, found: Set<string>): void => {
  const lines = text.split(LINE_END).map((line) => line.trim());
  if (lines.length === 1) return;
  let isKey = false;
  for (const line of lines) {
    const border = PEM_BORDER.exec(line)?.[1];
    if (border !== undefined) isKey = border === "BEGIN";
    else if (!isKey) addLine(line, found);
    else if (line.length >= MIN_PART_CHARS) found.add(line);
  }
};

const addLine = (line: string, found: Set<string>): void => {
  const text = line.replace(LINE_START, "");
  if (STRUCTURE.test(line) || STRUCTURE.test(text)) return;
  const [, name, rest = ""] = NAMED_VALUE.exec(text) ?? TAGGED_VALUE.exec(text) ?? [];
  // The end of base64 is no value.
  if (name === undefined || (/^=?$/.test(rest) && isOpaque(name))) {
    if (isOpaque(text) ? text.length >= MIN_PART_CHARS : isLongLine(text)) found.add(text);
    addRuns(text, found);
    return;
  }
  const value = unquote(rest);
  addValue(name, value, found);
  // The value is too short to be hidden everywhere, but not with its name.
  const isShort = value.length < MIN_PART_CHARS && text.length >= MIN_PART_CHARS;
  if (isShort && SECRET_NAME.test(name) && !STRUCTURE.test(value)) found.add(text);
};

const isLongLine = (text: string): boolean =>
  text.length >= (/^[A-Za-z]+$/.test(text) ? MIN_WORD_CHARS : MIN_WORDS_CHARS) && !PLAIN_URL.test(unquote(text));

const addValue = (name: string, value: string, found: Set<string>): void => {
  if (value.length < MIN_PART_CHARS || LINE_END.test(value)) return;
  if (isOpaque(value) || (SECRET_NAME.test(name) && !PLAIN_URL.test(value))) found.add(value);
  addRuns(value, found);
};

/** Adds the words of a line that look like secrets, such as the password of a URL. */
const addRuns = (text: string, found: Set<string>): void => {
  const separator = text.includes("://") ? /[\s:,;"'|@/?&=]+/ : /[\s:,;"'|]+/;
  for (const run of text.split(separator)) if (run.length >= MIN_PART_CHARS && isOpaque(run)) found.add(run);
};

/** Returns the value without its quotes, and without a comma or comment after them. */
const unquote = (text: string): string => {
  const [, , quoted] = /^(["'`])(.*)\1[,;]?(?:\s#.*)?$/s.exec(text) ?? [];
  return (
    quoted ??
    text
      .replace(/\s#\s.*$/, "")
      .replace(/[,;]$/, "")
      .trim()
  );
};

/** Returns whether a text contains letters and digits as no word or number has them, or a password in a URL. */
const isOpaque = (text: string): boolean =>
  URL_WITH_PASSWORD.test(text) ||
  text.split(/[^A-Za-z0-9]+/).some((run) => run.length >= MIN_PART_CHARS && !ORDINARY_RUN.test(run));
