// The arguments of the verbs that talk to a server: words and options in any order, `--` before what is not ours. Refuses options that
// nobody knows, with a guess at what was meant.
import { didYouMean } from "#base/config/nearest.ts";
import { toFlag } from "#base/config/setting.ts";
import { usageError } from "#base/usage-error.ts";

/** Where the server is and who asks, as flags; every client verb takes them. */
const CONNECTION = ["url", "token"] as const;
/** What `--output` takes; `--json` is short for the first. */
const OUTPUTS = ["json", "table"] as const;

export type Shape<Values extends string, Lists extends string, Switches extends string> = {
  /** Options with one value. */
  values?: readonly Values[];
  /** Options with one value that may be given again. */
  lists?: readonly Lists[];
  /** Options without a value. */
  switches?: readonly Switches[];
  /** One letter for some of them: `y: "yes"` is `-y`. */
  short?: Readonly<Record<string, Values | Lists | Switches>>;
};

export type Arguments<Values extends string = never, Lists extends string = never, Switches extends string = never> = {
  words: readonly string[];
  value: Partial<Record<Values | "url" | "token", string>>;
  list: Record<Lists, readonly string[]>;
  has: Record<Switches | "json", boolean>;
  /** What stands behind `--`; undefined without one. */
  behind: readonly string[] | undefined;
};

/** Reads arguments of a shape; `--json`, `--output`, `--url` and `--token` belong to every shape. Throws UsageError. */
export const readArguments = <
  const Values extends string = never,
  const Lists extends string = never,
  const Switches extends string = never,
>(
  argv: readonly string[],
  shape: Shape<Values, Lists, Switches> = {},
): Arguments<Values, Lists, Switches> => {
  const valued: readonly string[] = [...(shape.values ?? []), ...CONNECTION, "output"];
  const listed: readonly string[] = shape.lists ?? [];
  const switches: readonly string[] = [...(shape.switches ?? []), "json"];
  const short: Readonly<Record<string, string>> = shape.short ?? {};
  const end = argv.indexOf("--");
  const ours = end < 0 ? argv : argv.slice(0, end);
  const words: string[] = [];
  const value: Record<string, string> = {};
  const list: Record<string, string[]> = Object.fromEntries(listed.map((name) => [name, []]));
  const has: Record<string, boolean> = Object.fromEntries(switches.map((name) => [name, false]));
  for (let i = 0; i < ours.length; i++) {
    const argument = ours[i] as string;
    // A lone hyphen is a word: standard input.
    if (!argument.startsWith("-") || argument === "-") {
      words.push(argument);
      continue;
    }
    const equals = argument.indexOf("=");
    const flag = equals < 0 ? argument : argument.slice(0, equals);
    const name = /^-\w$/.test(flag) ? (short[flag.slice(1)] ?? "") : flag.replace(/^--/, "");
    if (switches.includes(name)) {
      if (equals >= 0) throw usageError(flag, "takes no value");
      has[name] = true;
      continue;
    }
    if (!valued.includes(name) && !listed.includes(name)) {
      throw usageError(flag, `unknown option.${didYouMean(flag, [...valued, ...listed, ...switches].map(toFlag))}`);
    }
    const given = equals < 0 ? ours[++i] : argument.slice(equals + 1);
    if (given === undefined || given === "") throw usageError(flag, "expected a value");
    if (listed.includes(name)) list[name]?.push(given);
    else if (value[name] !== undefined) throw usageError(flag, "given twice");
    else value[name] = given;
  }
  if (value.output !== undefined) has.json = isJson(value.output, has.json === true);
  const behind = end < 0 ? undefined : argv.slice(end + 1);
  type Result = Arguments<Values, Lists, Switches>;
  // The records hold exactly the names of the shape, by the checks above.
  return { words, value: value as Result["value"], list: list as Result["list"], has: has as Result["has"], behind };
};

/** No words are expected; throws UsageError about the first there is. */
export const noWords = ([more]: readonly string[]): void => {
  if (more !== undefined) throw usageError(more, "unexpected argument");
};

/** `name=value` pairs as the API wants them; throws UsageError about one that is none. */
export const pairs = (flag: string, given: readonly string[]): { name: string; value: string }[] =>
  given.map((pair) => {
    const equals = pair.indexOf("=");
    if (equals < 1) throw usageError(flag, `expected NAME=VALUE, got ${JSON.stringify(pair)}`);
    return { name: pair.slice(0, equals), value: pair.slice(equals + 1) };
  });

/** Throws UsageError for an output that there is not, or that contradicts `--json`. */
const isJson = (output: string, json: boolean): boolean => {
  if (!OUTPUTS.some((one) => one === output)) throw usageError("--output", `expected ${OUTPUTS.join(" or ")}`);
  if (json && output !== "json") throw usageError("--output", "not with --json");
  return output === "json";
};
