// Reads a Dockerfile as the builder of the Docker Engine does: what is read in another way is not checked. Refuses what versions of the
// engine read differently. Follows moby's parser: lines are joined without a blank, and flags are unquoted.
import { ProvisionError } from "../provisioner.ts";
import { findHeredoc } from "./heredoc.ts";

export type Instruction = {
  /** In upper case. */
  readonly word: string;
  /** Without quotes, such as `--from=build`. */
  readonly flags: readonly string[];
  readonly operands: string;
  /** Its first and last line, beginning with 1. */
  readonly lines: readonly [first: number, last: number];
};

const MAX_DOCKERFILE_BYTES = 256 * 1024;
/** The engine refuses longer lines. */
const MAX_LINE_BYTES = 65_534;

/**
 * Returns the instructions, once for each way in which an engine may read them. Throws ProvisionError, whose sentence begins with `subject`.
 */
export const readDockerfile = (text: string, subject = "The Dockerfile"): Instruction[][] => {
  if (Buffer.byteLength(text) > MAX_DOCKERFILE_BYTES)
    throw new ProvisionError(`${subject} has more than 256 KiB. Move long commands into scripts.`);
  const lines = text.replace(/^\uFEFF/, "").split(/\r?\n/);
  for (const [at, line] of lines.entries()) checkLine(line, { subject, number: at + 1 });
  const sign = ESCAPE.exec(lines[0] ?? "")?.[1] ?? "\\";
  // Old engines take an indented remark inside a continued line for a part of it, and continue a line that ends with two escape characters.
  return [true, false].flatMap((skipsIndented) =>
    [true, false].map((continuesDoubled) =>
      readInstructions(lines, { subject, sign, skipsIndented, continuesDoubled }),
    ),
  );
};

type LinePosition = {
  /** The beginning of an error's sentence. */
  readonly subject: string;
  /** Of the line, beginning with 1. */
  readonly number: number;
};

const refused = ({ subject, number }: LinePosition, what: string, rest: string): ProvisionError =>
  new ProvisionError(`${subject} has ${what} in line ${number}${rest}`);

/** All but the tab. The engine removes U+FEFF only at the beginning of the file, but JavaScript trims it everywhere. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones to find.
const CONTROL = /[\0-\x08\x0b-\x1f\x7f\u0085\u2028\u2029\uFEFF]/;
const ESCAPE = /^#[ \t]*escape[ \t]*=[ \t]*([`\\])[ \t]*$/i;
/** Anything that an engine could read as a change of the escape character. */
const ODD_ESCAPE = /^\s*#\s*escape\s*=\s*`/i;

const checkLine = (line: string, position: LinePosition): void => {
  if (Buffer.byteLength(line) > MAX_LINE_BYTES)
    throw refused(
      position,
      `more than ${MAX_LINE_BYTES} bytes`,
      ". The Docker Engine refuses such lines. Split the line.",
    );
  const control = CONTROL.exec(line)?.[0];
  if (control !== undefined) {
    const code = control.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");
    throw refused(
      position,
      `the character U+${code}`,
      ", which versions of the Docker Engine read differently. Remove it.",
    );
  }
  if (ODD_ESCAPE.test(line) && !(position.number === 1 && ESCAPE.test(line)))
    throw refused(
      position,
      line.trim().slice(0, 80),
      ". The escape character is set in the first line only. Move it there.",
    );
};

type Reading = {
  readonly subject: string;
  /** The escape character. */
  readonly sign: string;
  readonly skipsIndented: boolean;
  readonly continuesDoubled: boolean;
};

const readInstructions = (lines: readonly string[], reading: Reading): Instruction[] => {
  const { subject, sign, skipsIndented, continuesDoubled } = reading;
  const instructions: Instruction[] = [];
  let open: { readonly text: string; readonly position: LinePosition } | undefined;
  for (const [at, line] of lines.entries()) {
    const left = line.trimStart();
    const isRemark = (open === undefined || skipsIndented ? left : line).startsWith("#");
    if (isRemark || left === "") continue;
    const end = findEnd(line);
    const isOpen = line[end - 1] === sign && (continuesDoubled || line[end - 2] !== sign);
    const part = isOpen ? line.slice(0, end - 1) : line;
    const text: string = open === undefined ? part.trimStart() : open.text + part;
    const position: LinePosition = open?.position ?? { subject, number: at + 1 };
    if (!isOpen) instructions.push(readInstruction(text, position, at + 1, skipsIndented));
    open = isOpen ? { text, position } : undefined;
  }
  if (open !== undefined) instructions.push(readInstruction(open.text, open.position, lines.length, skipsIndented));
  return instructions;
};

/** Returns the position after the last character that is neither a blank nor a tab. */
const findEnd = (line: string): number => {
  let end = line.length;
  while (line[end - 1] === " " || line[end - 1] === "\t") end--;
  return end;
};

/** Engines that take remarks for a part of a line are older than here-documents. */
const readInstruction = (text: string, position: LinePosition, last: number, hasHeredocs: boolean): Instruction => {
  const outer = splitInstruction(text, position);
  const one = outer.word === "ONBUILD" ? splitInstruction(outer.operands, position) : outer;
  if (one !== outer && one.word === "ONBUILD")
    throw refused(position, "ONBUILD ONBUILD", ", which the Docker Engine refuses. Remove one of them.");
  const { word, flags, operands } = one;
  const instruction: Instruction = { word, flags, operands, lines: [position.number, last] };
  if (!hasHeredocs || !["RUN", "COPY", "ADD"].includes(word)) return instruction;
  const heredoc = findHeredoc(text);
  if (heredoc === undefined) return instruction;
  const advice = "Join the commands with && or move them into a script. Write shifts without spaces, as in $((1<<20)).";
  throw refused(
    position,
    `a here-document (${heredoc})`,
    `, whose lines the Docker Engine's build leaves out. ${advice}`,
  );
};

const splitInstruction = (text: string, position: LinePosition): Omit<Instruction, "lines"> => {
  const [, word = "", rest = ""] = /^([^\t\v\f\r ]+)(?:[\t\v\f\r ]+(.*))?$/s.exec(text.trim()) ?? [];
  // The engine folds these two to ASCII letters.
  if (/[\u0130\u212a]/.test(word))
    throw refused(position, `the instruction ${word.slice(0, 80)}`, ". Write it in ASCII letters.");
  const { flags, operands } = splitFlags(rest);
  return { word: word.toUpperCase(), flags, operands };
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
