// Reads a Dockerfile as the builder of the Docker Engine does: what is read in another way is not checked. Refuses what versions of the
// engine read differently. Follows moby's parser: lines are joined without a blank, and flags are unquoted.
import { ProvisionError } from "../provisioner.ts";

export type Instruction = {
  /** In upper case. */
  readonly word: string;
  /** Without quotes, such as `--from=build`. */
  readonly flags: readonly string[];
  readonly operands: string;
  /** The line may be inside a here-document. */
  readonly isQuoted: boolean;
};

/** Returns the instructions, once for each way in which an engine may read them. Throws ProvisionError. */
export const readDockerfile = (text: string): Instruction[][] => {
  const plain = text.replace(/^\uFEFF/, "");
  if (CONTROL.test(plain)) throw refused("has a control character");
  const lines = plain.split(/\r?\n/);
  const sign = ESCAPE.exec(lines[0] ?? "")?.[1] ?? "\\";
  const rest = ESCAPE.test(lines[0] ?? "") ? lines.slice(1) : lines;
  if (rest.some((line) => ANY_ESCAPE.test(line)))
    throw refused("names its escape character in another line than the first");
  // Old engines take an indented remark inside a continued line for a part of it, others skip it.
  return [true, false].map((skipsIndented) => joined(rest, sign, skipsIndented));
};

/** Returns the instruction of one line, such as a trigger of an image. */
export const readInstruction = (line: string, isQuoted = false): Instruction => {
  const [, word = "", rest = ""] = /^([^\t\v\f\r ]+)(?:[\t\v\f\r ]+(.*))?$/s.exec(line.trim()) ?? [];
  // The engine folds these two to ASCII letters.
  if (/[\u0130\u212a]/.test(word)) throw refused(`has the instruction ${word}, which is not written in ASCII letters`);
  const { flags, operands } = splitFlags(rest.trim());
  if (word.toUpperCase() === "ONBUILD") return readInstruction(operands, isQuoted);
  return { word: word.toUpperCase(), flags, operands, isQuoted };
};

const refused = (what: string): ProvisionError =>
  new ProvisionError(`The Dockerfile ${what}, so it cannot be checked.`);

/** Except tabs and ends of lines. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones to find.
const CONTROL = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f\u0085\u2028\u2029]|\r(?!\n)/;
const ESCAPE = /^#[ \t]*escape[ \t]*=[ \t]*([`\\])[ \t]*$/i;
const ANY_ESCAPE = /^\s*#\s*escape\s*=/i;
/** The end of a here-document that could itself continue a line. */
const ODD_HEREDOC = /<<-?\S*[\\`]/;

const joined = (lines: readonly string[], sign: string, skipsIndented: boolean): Instruction[] => {
  const whole: string[] = [];
  let open: string | undefined;
  for (const line of lines) {
    const left = line.trimStart();
    const isRemark = (open === undefined || skipsIndented ? left : line).startsWith("#");
    if (isRemark || left === "") continue;
    const end = line.trimEnd().endsWith(sign) ? line.replace(/[ \t]+$/, "") : line;
    const isOpen = end.endsWith(sign);
    if (end.endsWith(sign + sign)) throw refused("has a line that ends with two escape characters");
    const part = isOpen ? end.slice(0, -1) : line;
    const text: string = open === undefined ? part.trimStart() : open + part;
    if (isOpen) open = text;
    else {
      whole.push(text);
      open = undefined;
    }
  }
  if (open !== undefined) whole.push(open);
  let quotedUntil: string | undefined;
  return whole.map((line) => {
    if (ODD_HEREDOC.test(line)) throw refused("has a here-document whose end has an escape character");
    const isQuoted = quotedUntil !== undefined;
    if (isQuoted && line.trim() === quotedUntil) quotedUntil = undefined;
    else quotedUntil ??= /<<-?["']?(\w+)/.exec(line)?.[1];
    return readInstruction(line, isQuoted);
  });
};

/** The engine looks at bytes, of which two that are parts of characters count as spaces. */
const isSpace = (sign: string): boolean => /[\t\n\v\f\r \x85\xa0]/.test(sign);

/** Separates the words that begin with `--`, and removes their quotes. */
const splitFlags = (text: string): { flags: string[]; operands: string } => {
  const bytes = Buffer.from(text).toString("latin1");
  const flags: string[] = [];
  let at = 0;
  for (;;) {
    while (at < bytes.length && isSpace(bytes[at] as string)) at++;
    if (!bytes.startsWith("--", at)) break;
    let word = "";
    let quote = "";
    for (; at < bytes.length && (quote !== "" || !isSpace(bytes[at] as string)); at++) {
      const byte = bytes[at] as string;
      if (byte === "\\") word += bytes[++at] ?? "";
      else if (byte === quote) quote = "";
      else if (quote === "" && (byte === '"' || byte === "'")) quote = byte;
      else word += byte;
    }
    if (word === "--") break;
    flags.push(word);
  }
  return { flags, operands: Buffer.from(bytes.slice(at), "latin1").toString() };
};
