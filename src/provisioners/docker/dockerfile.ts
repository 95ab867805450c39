// Reads a Dockerfile in the same way as moby's parser in the Docker Engine, so that checks see the instructions that the engine builds. For
// example, continued lines are joined without a blank, and flags are unquoted. Refuses text that versions of the engine read differently.
import { ProvisionError } from "../provisioner.ts";
import { findHeredoc } from "./heredoc.ts";

export type Instruction = {
  /** In upper case. */
  readonly word: string;
  /** Without quotes, such as `--from=build`. */
  readonly flags: readonly string[];
  readonly operands: string;
  /** The numbers of the instruction's first and last line, beginning with 1. */
  readonly lines: readonly [first: number, last: number];
};

const MAX_DOCKERFILE_BYTES = 256 * 1024;
/** The engine refuses longer lines. */
const MAX_LINE_BYTES = 65_534;

/**
 * Returns the instructions, once for each way in which an engine may read them. Throws ProvisionError with a message that begins with
 * `subject`.
 */
export const readDockerfile = (text: string, subject = "The Dockerfile"): Instruction[][] => {
  if (Buffer.byteLength(text) > MAX_DOCKERFILE_BYTES)
    throw new ProvisionError(`${subject} has more than 256 KiB. Move long commands into scripts.`);
  const lines = text.replace(/^\uFEFF/, "").split(/\r?\n/);
  for (const [at, line] of lines.entries()) checkLine(line, { subject, number: at + 1 });
  const escapeCharacter = ESCAPE_DIRECTIVE.exec(lines[0] ?? "")?.[1] ?? "\\";
  // Old engines treat an indented comment inside a continued line as a part of the line, and continue a line that ends with two escape
  // characters.
  return [true, false].flatMap((skipsIndented) =>
    [true, false].map((continuesDoubled) =>
      readInstructions(lines, { subject, escapeCharacter, skipsIndented, continuesDoubled }),
    ),
  );
};

type LinePosition = {
  /** The subject of an error message, such as `The Dockerfile`. */
  readonly subject: string;
  /** The number of the line, beginning with 1. */
  readonly number: number;
};

const createRefusal = ({ subject, number }: LinePosition, found: string, explanation: string): ProvisionError =>
  new ProvisionError(`${subject} has ${found} in line ${number}${explanation}`);

/** Control characters except the tab. The engine removes U+FEFF only at the beginning of the file, but JavaScript trims it everywhere. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: this expression finds them.
const CONTROL_CHARACTER = /[\0-\x08\x0b-\x1f\x7f\u0085\u2028\u2029\uFEFF]/;
const ESCAPE_DIRECTIVE = /^#[ \t]*escape[ \t]*=[ \t]*([`\\])[ \t]*$/i;
/** A comment that an engine could read as a change of the escape character. */
const POSSIBLE_ESCAPE_DIRECTIVE = /^\s*#\s*escape\s*=\s*`/i;

const checkLine = (line: string, position: LinePosition): void => {
  if (Buffer.byteLength(line) > MAX_LINE_BYTES)
    throw createRefusal(
      position,
      `more than ${MAX_LINE_BYTES} bytes`,
      ". The Docker Engine refuses such lines. Split the line.",
    );
  const control = CONTROL_CHARACTER.exec(line)?.[0];
  if (control !== undefined) {
    const code = control.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");
    throw createRefusal(
      position,
      `the character U+${code}`,
      ", which versions of the Docker Engine read differently. Remove it.",
    );
  }
  if (POSSIBLE_ESCAPE_DIRECTIVE.test(line) && !(position.number === 1 && ESCAPE_DIRECTIVE.test(line)))
    throw createRefusal(
      position,
      line.trim().slice(0, 80),
      ". The escape character is set in the first line only. Move it there.",
    );
};

/** One way in which engines read a Dockerfile. */
type Reading = {
  readonly subject: string;
  readonly escapeCharacter: string;
  /** Whether indented comments inside a continued line are skipped. */
  readonly skipsIndented: boolean;
  /** Whether a line that ends with two escape characters is continued. */
  readonly continuesDoubled: boolean;
};

const readInstructions = (lines: readonly string[], reading: Reading): Instruction[] => {
  const { subject, escapeCharacter, skipsIndented, continuesDoubled } = reading;
  const instructions: Instruction[] = [];
  let open: { readonly text: string; readonly position: LinePosition } | undefined;
  for (const [at, line] of lines.entries()) {
    const trimmed = line.trimStart();
    const isComment = (open === undefined || skipsIndented ? trimmed : line).startsWith("#");
    if (isComment || trimmed === "") continue;
    const end = findEnd(line);
    const continues = line[end - 1] === escapeCharacter && (continuesDoubled || line[end - 2] !== escapeCharacter);
    const part = continues ? line.slice(0, end - 1) : line;
    const text: string = open === undefined ? part.trimStart() : open.text + part;
    const position: LinePosition = open?.position ?? { subject, number: at + 1 };
    if (!continues) instructions.push(readInstruction(text, position, at + 1, skipsIndented));
    open = continues ? { text, position } : undefined;
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

/** `hasHeredocs` is false for old engines, which treat a comment in a continued line as a part of the line. */
const readInstruction = (text: string, position: LinePosition, last: number, hasHeredocs: boolean): Instruction => {
  const outer = splitInstruction(text, position);
  const inner = outer.word === "ONBUILD" ? splitInstruction(outer.operands, position) : outer;
  if (inner !== outer && inner.word === "ONBUILD")
    throw createRefusal(position, "ONBUILD ONBUILD", ", which the Docker Engine refuses. Remove one of them.");
  const { word, flags, operands } = inner;
  const instruction: Instruction = { word, flags, operands, lines: [position.number, last] };
  if (!hasHeredocs || !["RUN", "COPY", "ADD"].includes(word)) return instruction;
  const heredoc = findHeredoc(text);
  if (heredoc === undefined) return instruction;
  const advice = "Join the commands with && or move them into a script. Write shifts without spaces, as in $((1<<20)).";
  throw createRefusal(
    position,
    `a here-document (${heredoc})`,
    `, whose lines the Docker Engine's build leaves out. ${advice}`,
  );
};

const splitInstruction = (text: string, position: LinePosition): Omit<Instruction, "lines"> => {
  const [, word = "", rest = ""] = /^([^\t\v\f\r ]+)(?:[\t\v\f\r ]+(.*))?$/s.exec(text.trim()) ?? [];
  // The engine converts these two characters to ASCII letters.
  if (/[\u0130\u212a]/.test(word))
    throw createRefusal(position, `the instruction ${word.slice(0, 80)}`, ". Write it in ASCII letters.");
  const { flags, operands } = splitFlags(rest);
  return { word: word.toUpperCase(), flags, operands };
};

/** The engine checks bytes, not characters, so the bytes 85 and A0 inside of UTF-8 characters count as spaces. */
const isSpace = (byte: string): boolean => /[\t\n\v\f\r \x85\xa0]/.test(byte);

/** Separates the words that begin with `--`, and removes their quotes. */
const splitFlags = (text: string): { flags: string[]; operands: string } => {
  const bytes = Buffer.from(text).toString("latin1");
  const flags: string[] = [];
  let offset = 0;
  for (;;) {
    while (offset < bytes.length && isSpace(bytes[offset] as string)) offset++;
    if (!bytes.startsWith("--", offset)) break;
    let word = "";
    let quote = "";
    for (; offset < bytes.length && (quote !== "" || !isSpace(bytes[offset] as string)); offset++) {
      const byte = bytes[offset] as string;
      if (byte === "\\") word += bytes[++offset] ?? "";
      else if (byte === quote) quote = "";
      else if (quote === "" && (byte === '"' || byte === "'")) quote = byte;
      else word += byte;
    }
    if (word === "--") break;
    flags.push(word);
  }
  return { flags, operands: Buffer.from(bytes.slice(offset), "latin1").toString() };
};
