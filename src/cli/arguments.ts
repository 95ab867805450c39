// Parses the arguments of client commands: words and options in any order, and `--` before arguments for other programs. Rejects unknown
// options with a suggestion.

import { toFlag } from "#base/config/setting.ts";
import { suggestName } from "#base/config/suggest.ts";
import { usageError } from "#base/usage-error.ts";

/** The server's address and token as flags; every client command accepts them. */
const CONNECTION = ["url", "token"] as const;
/** The values of `--output`; `--json` is short for the first. */
const OUTPUT_FORMATS = ["json", "table"] as const;

export type Shape<Values extends string, Lists extends string, Switches extends string> = {
  /** Options with one value. */
  values?: readonly Values[];
  /** Options with one value that may be repeated. */
  lists?: readonly Lists[];
  /** Options without a value. */
  switches?: readonly Switches[];
  /** One-letter aliases: `y: "yes"` is `-y`. */
  short?: Readonly<Record<string, Values | Lists | Switches>>;
};

export type Arguments<Values extends string = never, Lists extends string = never, Switches extends string = never> = {
  words: readonly string[];
  value: Partial<Record<Values | "url" | "token", string>>;
  list: Record<Lists, readonly string[]>;
  has: Record<Switches | "json", boolean>;
  /** The arguments after `--`; undefined without one. */
  afterDashes: readonly string[] | undefined;
};

/** Parses arguments of a shape. `--json`, `--output`, `--url` and `--token` belong to every shape. Throws UsageError. */
export const readArguments = <
  const Values extends string = never,
  const Lists extends string = never,
  const Switches extends string = never,
>(
  argv: readonly string[],
  shape: Shape<Values, Lists, Switches> = {},
): Arguments<Values, Lists, Switches> => {
  const valueNames: readonly string[] = [...(shape.values ?? []), ...CONNECTION, "output"];
  const listNames: readonly string[] = shape.lists ?? [];
  const switchNames: readonly string[] = [...(shape.switches ?? []), "json"];
  const short: Readonly<Record<string, string>> = shape.short ?? {};
  const separatorIndex = argv.indexOf("--");
  const ownArguments = separatorIndex < 0 ? argv : argv.slice(0, separatorIndex);
  const words: string[] = [];
  const value: Record<string, string> = {};
  const list: Record<string, string[]> = Object.fromEntries(listNames.map((name) => [name, []]));
  const has: Record<string, boolean> = Object.fromEntries(switchNames.map((name) => [name, false]));
  for (let i = 0; i < ownArguments.length; i++) {
    const argument = ownArguments[i] as string;
    // A lone hyphen is a word that means standard input.
    if (!argument.startsWith("-") || argument === "-") {
      words.push(argument);
      continue;
    }
    const equals = argument.indexOf("=");
    const flag = equals < 0 ? argument : argument.slice(0, equals);
    const name = /^-\w$/.test(flag) ? (short[flag.slice(1)] ?? "") : flag.replace(/^--/, "");
    if (switchNames.includes(name)) {
      if (equals >= 0) throw usageError(flag, "takes no value");
      has[name] = true;
      continue;
    }
    if (!valueNames.includes(name) && !listNames.includes(name)) {
      throw usageError(
        flag,
        `unknown option.${suggestName(flag, [...valueNames, ...listNames, ...switchNames].map(toFlag))}`,
      );
    }
    const text = equals < 0 ? ownArguments[++i] : argument.slice(equals + 1);
    if (text === undefined || text === "") throw usageError(flag, "expected a value");
    if (listNames.includes(name)) list[name]?.push(text);
    else if (value[name] !== undefined) throw usageError(flag, "given twice");
    else value[name] = text;
  }
  if (value.output !== undefined) has.json = isJson(value.output, has.json === true);
  const afterDashes = separatorIndex < 0 ? undefined : argv.slice(separatorIndex + 1);
  type Result = Arguments<Values, Lists, Switches>;
  // By the checks above, the records contain exactly the names of the shape.
  return {
    words,
    value: value as Result["value"],
    list: list as Result["list"],
    has: has as Result["has"],
    afterDashes,
  };
};

/** Throws UsageError if there are any words. */
export const requireNoWords = ([first]: readonly string[]): void => {
  if (first !== undefined) throw usageError(first, "unexpected argument");
};

/** Parses `name=value` pairs into the API's form. Throws UsageError for an invalid pair. */
export const parsePairs = (flag: string, pairs: readonly string[]): { name: string; value: string }[] =>
  pairs.map((pair) => {
    const equals = pair.indexOf("=");
    if (equals < 1) throw usageError(flag, `expected NAME=VALUE, got ${JSON.stringify(pair)}`);
    return { name: pair.slice(0, equals), value: pair.slice(equals + 1) };
  });

/** Throws UsageError for an unknown output, or one that contradicts `--json`. */
const isJson = (output: string, json: boolean): boolean => {
  if (!OUTPUT_FORMATS.some((one) => one === output))
    throw usageError("--output", `expected ${OUTPUT_FORMATS.join(" or ")}`);
  if (json && output !== "json") throw usageError("--output", "not with --json");
  return output === "json";
};
