// Extracts a command's own options (`--user NAME`, `--json`) from the arguments; the rest are settings.
import { usageError } from "#base/usage-error.ts";
import { toPlainLine } from "./text.ts";
import type { VerbInput } from "./verb.ts";

export type TakenOptions<Names extends string> = {
  /** The arguments before the first flag, such as `create alice`. */
  words: readonly string[];
  options: Partial<Record<Names, string>>;
  /** Arguments that are settings. */
  rest: readonly string[];
};

/** `names` take a value (`--name value` or `--name=value`) and may occur once. Throws UsageError. */
export const takeOptions = <const Names extends string>(
  argv: readonly string[],
  names: readonly Names[],
): TakenOptions<Names> => {
  const first = argv.findIndex((argument) => argument.startsWith("-"));
  const words = first < 0 ? argv : argv.slice(0, first);
  const options: Partial<Record<Names, string>> = {};
  const rest: string[] = [];
  for (let i = words.length; i < argv.length; i++) {
    const argument = argv[i] as string;
    const name = names.find((one) => argument === `--${one}` || argument.startsWith(`--${one}=`));
    if (name === undefined) {
      rest.push(argument);
      continue;
    }
    if (options[name] !== undefined) throw usageError(`--${name}`, "given twice");
    const value = argument.includes("=") ? argument.slice(argument.indexOf("=") + 1) : argv[++i];
    if (value === undefined || value === "") throw usageError(`--${name}`, "expected a value");
    options[name] = value;
  }
  return { words, options, rest };
};

/** Throws UsageError for an option that the command does not use, because the user expects it to have an effect. */
export const rejectOtherOptions = (options: object, command: string, accepted: readonly string[]): void => {
  const other = Object.keys(options).find((name) => !accepted.includes(name));
  if (other !== undefined) throw usageError(`--${other}`, `\`${command}\` does not accept it`);
};

/** Returns the only word of a command. Throws UsageError with `expected` if none exists or more than one. */
export const requireOneWord = (words: readonly string[], expected: string): string => {
  const [word, more] = words;
  if (word === undefined) throw usageError("argument", `expected ${expected}`);
  if (more !== undefined) throw usageError(more, "unexpected argument");
  return word;
};

/** Reads the file that an option names. Throws UsageError if that fails. */
export const readOptionFile = (flag: string, file: string, { readFile }: Pick<VerbInput, "readFile">): string => {
  try {
    return readFile(file);
  } catch (error) {
    throw usageError(flag, `${file} cannot be read: ${(error as Error).message}`);
  }
};

/** Formats one row per field; leaves out fields without a value. */
export const formatFields = (fields: readonly (readonly [name: string, value: string | undefined])[]): string => {
  const width = Math.max(...fields.map(([name]) => name.length));
  return fields
    .flatMap(([name, value]) => (value === undefined ? [] : [`${name.padEnd(width)}  ${toPlainLine(value)}`]))
    .join("\n");
};

/** Formats rows as a table with aligned columns. */
export const formatTable = (head: readonly string[], rows: readonly (readonly string[])[]): string => {
  const all = [head, ...rows];
  const widths = head.map((_, i) => Math.max(...all.map((row) => Bun.stringWidth(row[i] ?? ""))));
  const padCell = (text: string, i: number): string => text + " ".repeat((widths[i] ?? 0) - Bun.stringWidth(text));
  return all.map((row) => row.map(padCell).join("  ").trimEnd()).join("\n");
};
