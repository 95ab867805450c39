// Lists the parts of a secret that are secrets on their own: the lines of a key, the values of a configuration file. Programs show them
// separately: with line numbers, in diffs, by `head` or `grep`. Ordinary lines, which other texts contain too, are left out. Pure.
import { tryParseJson } from "../json/read.ts";

/** Shorter parts could match unrelated texts. */
const MIN_PART_CHARS = 8;
/** Maximum depth of values in JSON. */
const MAX_DEPTH = 16;

/** Line ends, also as JSON and programs escape them. */
const LINE_END = /\r\n|\r|\n|(?:\\{1,8}r)?\\{1,8}n/;
const PEM_BORDER = /-----(BEGIN|END) [A-Z0-9 ]+-----/;
/** The prefix of a line: marks of comments, lists and diffs, and commands that set a variable. */
const LINE_START = /^(?:(?:[-+*>;]|\/\/|export|set|setenv|ENV)\s+|#+\s*)+/;
/** `name: value`, `name=value` or `"name": "value"`. */
const NAMED_VALUE = /^["']?([\w.:/@-]*?[\w.@-])["']?\s*(?:=>?|:=?(?=\s|["'[{]|$))\s*(.*)$/s;
const TAGGED_VALUE = /^<([\w:.-]+)(?:\s[^<>]*)?>([^<>]*)<\/[\w:.-]+>$/;
/** A tag without content, the header of a section, the first line of a script, or punctuation. */
const STRUCTURE = /^(?:<[^<>]*>|\[[^\]=]*\]|#!.*|\W*)$/;
/** A line that is a comment in a common language. */
const COMMENT = /^(?:#|\/\/|;|--|\/?\*)/;
/** Ends of names of passwords, whose values can be ordinary words. Names are in snake case. */
const PASSWORD_NAME = /(?:password|passwd|passphrase|pwd|secret|(?:^|[^a-z])(?:pass|pin))$/;
/** Ends of names of other secrets, whose values are not ordinary words. */
const SECRET_NAME =
  /(?:token|(?:api|access|auth|private|secret|encryption|signing|master)[^a-z]?key|(?:^|[^a-z])(?:credentials?|cookie|salt|signature))$/;
/** Values that many texts contain: the passwords of examples, and words for types and settings. */
const DEFAULT_PASSWORD = /^(?:change-?me|database|example|password|postgres(?:ql)?)$/i;
const KEYWORD =
  /^(?:boolean|bytes|disabled|enabled|false|none|null|number|optional|prompt|required|str|string|true|undefined)$/i;
/** A variable, a call or a placeholder in a program or template. */
const EXPRESSION = /^(?:\$[\w{(]|\{\{|<[^<>]*>$|[\w.]+\(|(?:os|process|import|env)\.)/;
const PATH = /^(?:~|\.{0,2})\/[\w@./-]*$/;
/** The password in a line of .netrc. */
const NETRC_PASSWORD = /^(?:default\s+|(?:machine|login|account)\s+\S+\s+)*password\s+(\S+)$/;
const PLAIN_URL = /^[a-z][a-z0-9+.-]*:\/\/[^\s@]*$/i;
const URL_WITH_PASSWORD = /:\/\/[^/\s:@]*:[^/\s@]+@/;
/**
 * Letters and digits as in words, names and numbers: `production`, `apiVersion2`, `20240131`, `Ec2InstanceMetadata`; and the names of
 * algorithms.
 */
const ORDINARY_RUN =
  /^(?:(?:[A-Z][a-z]\d{1,3}(?=[A-Z]))?(?:(?:[a-z]{2,}(?![a-z])|[A-Z]+(?![A-Z]))+(?:\d{1,3}(?=[A-Z]?[a-z]{3}))?){1,2}(?:(?<!\d)\d{1,2})?|\d{1,9}|(?:chacha20)?poly1305|curve25519|(?:nistp|sha)\d{3})$/;
/** The time of `ORDINARY_RUN` grows with the square of the length, and longer words and names are rare. */
const MAX_ORDINARY_CHARS = 64;
/** Groups of letters and digits, as in recovery codes. */
const CODE = /^[A-Za-z0-9]{3,8}(?:-[A-Za-z0-9]{3,8})+$/;

/** Returns the lines and values of a secret that must be hidden on their own. Excludes the secret itself. */
export const listSecretParts = (secret: string): string[] => {
  const parts = new Set<string>();
  if (/^\s*[[{"]/.test(secret)) addJson(secret, parts);
  addLines(secret, parts);
  parts.delete(secret);
  return [...parts];
};

const addJson = (text: string, parts: Set<string>): void => {
  const addTexts = (value: unknown, name: string, depth: number): void => {
    if (typeof value === "string") {
      addValue(name, value, parts);
      addLines(value, parts);
    }
    if (typeof value !== "object" || value === null || depth === MAX_DEPTH) return;
    const isList = Array.isArray(value);
    for (const [key, inner] of Object.entries(value)) addTexts(inner, isList ? name : key, depth + 1);
  };
  addTexts(tryParseJson(text), "", 0);
};

const addLines = (text: string, parts: Set<string>): void => {
  const lines = text.split(LINE_END).map((line) => line.trim());
  if (lines.length === 1) return;
  const contents = lines.filter((line) => !STRUCTURE.test(line) && !COMMENT.test(line) && !PEM_BORDER.test(line));
  let isKey = false;
  for (const line of lines) {
    const border = PEM_BORDER.exec(line)?.[1];
    if (border !== undefined) isKey = border === "BEGIN";
    else if (!isKey) addLine(line, contents.length === 1, parts);
    else if (line.length >= MIN_PART_CHARS) parts.add(line);
  }
};

/** `isOnly`: all other lines are comments or punctuation, so this line is the secret itself, such as a passphrase. */
const addLine = (line: string, isOnly: boolean, parts: Set<string>): void => {
  const text = line.replace(LINE_START, "");
  if (STRUCTURE.test(line) || STRUCTURE.test(text)) return;
  const isComment = COMMENT.test(line);
  const [, name, rest = ""] = NAMED_VALUE.exec(text) ?? TAGGED_VALUE.exec(text) ?? [];
  // The padding of Base64 is not a value.
  if (name === undefined || (/^=?$/.test(rest) && isOpaque(name))) {
    const isSecret = isComment
      ? isOpaque(text) && !/\s/.test(text)
      : isOpaque(text) || (isOnly && !PLAIN_URL.test(text));
    if (isSecret && text.length >= MIN_PART_CHARS) parts.add(text);
    addRuns(text, parts);
    const password = NETRC_PASSWORD.exec(text)?.[1];
    if (password !== undefined) addValue("password", password, parts);
    return;
  }
  const value = unquote(rest);
  // A sentence in a comment can look like a name and a value.
  if (isComment && /\s/.test(value)) {
    addRuns(value, parts);
    return;
  }
  addValue(name, value, parts);
  // A value that is too short or too common to be hidden everywhere is hidden together with its name.
  const isCommon = value.length < MIN_PART_CHARS || DEFAULT_PASSWORD.test(value);
  if (isCommon && text.length >= MIN_PART_CHARS && isNamedSecret(name, value)) parts.add(text);
};

const addValue = (name: string, value: string, parts: Set<string>): void => {
  if (value.length < MIN_PART_CHARS || LINE_END.test(value)) return;
  if (isOpaque(value) || (isNamedSecret(name, value) && !DEFAULT_PASSWORD.test(value))) parts.add(value);
  addRuns(value, parts);
};

/** Returns whether the value is a secret because of its name. */
const isNamedSecret = (name: string, value: string): boolean => {
  if (STRUCTURE.test(value) || KEYWORD.test(value) || EXPRESSION.test(value) || PLAIN_URL.test(value)) return false;
  const words = name.replace(/([a-z\d])([A-Z])/g, "$1_$2").toLowerCase();
  if (PASSWORD_NAME.test(words)) return true;
  return SECRET_NAME.test(words) && /\d/.test(value) && !/\s/.test(value) && !PATH.test(value);
};

/** Adds the words of a line that look like secrets, such as the password of a URL. */
const addRuns = (text: string, parts: Set<string>): void => {
  const separator = text.includes("://") ? /[\s:,;"'|@/?&=]+/ : /[\s:,;"'|]+/;
  for (const run of text.split(separator)) if (run.length >= MIN_PART_CHARS && isOpaque(run)) parts.add(run);
};

/** Returns the value without its quotes, and without a comma or comment after them. */
const unquote = (text: string): string => {
  const [, , quoted] = /^(["'`])(.*)\1[,;]?(?:\s#.*)?$/s.exec(text) ?? [];
  return (
    quoted ??
    text
      .replace(/\s#\s[\s\S]*/, "")
      .replace(/[,;]$/, "")
      .trim()
  );
};

/** Returns whether a text contains a password in a URL, or letters and digits in an order that words and numbers don't have. */
const isOpaque = (text: string): boolean =>
  URL_WITH_PASSWORD.test(text) ||
  text.split(/[^A-Za-z0-9]+/).some((run) => run.length >= MIN_PART_CHARS && !isOrdinary(run)) ||
  (CODE.test(text) && text.split("-").filter((run) => !isOrdinary(run)).length > 1);

const isOrdinary = (run: string): boolean => run.length <= MAX_ORDINARY_CHARS && ORDINARY_RUN.test(run);
