// Commands with subcommands: each subcommand has a file, which is loaded on demand.
import { suggestName } from "#base/config/suggest.ts";
import { type UsageError, usageError } from "#base/usage-error.ts";
import type { RunVerb, SubVerb, Verb } from "./verb.ts";

type Group = Pick<Verb, "name" | "area" | "help" | "details"> & {
  subcommands: readonly SubVerb[];
  /** The behavior without a subcommand, such as `slipway open dev`. */
  otherwise?: Pick<SubVerb, "usage" | "load">;
};

/** Returns a verb that dispatches to its subcommands. */
export const group = ({ name, area, help, details, subcommands, otherwise }: Group): Verb => ({
  name,
  area,
  help,
  subcommands,
  usage: otherwise?.usage ?? `${subcommands.map((word) => word.name).join("|")} ...`,
  ...(otherwise ? { isCalledAlone: true } : {}),
  ...(details ? { details } : {}),
  load: async () => ({ run: createDispatcher(name, subcommands, otherwise) }),
});

/** Returns the subcommand that the arguments begin with, which may be two words such as `apps list`, and the remaining arguments. */
export const findSubVerb = (
  subcommands: readonly SubVerb[],
  argv: readonly string[],
): { readonly word: SubVerb; readonly rest: readonly string[] } | undefined => {
  for (const length of [1, 2]) {
    const name = argv.slice(0, length).join(" ");
    const word = subcommands.find((one) => one.name === name);
    if (word) return { word, rest: argv.slice(length) };
  }
  return undefined;
};

/** Throws UsageError for an unknown subcommand. */
const createDispatcher =
  (verb: string, subcommands: readonly SubVerb[], otherwise: Group["otherwise"]): RunVerb =>
  async (input) => {
    const found = findSubVerb(subcommands, input.argv);
    if (!found && !(otherwise && isSingleWord(input.argv))) throw toUnknownVerbError(verb, subcommands, input.argv);
    const { run } = await (found?.word ?? (otherwise as SubVerb)).load();
    return run({ ...input, argv: found?.rest ?? input.argv });
  };

/** Returns false for two words in a row, which would be an unknown subcommand and its argument. */
const isSingleWord = (argv: readonly string[]): boolean =>
  argv.slice(0, 2).some((word) => word.startsWith("-")) || argv.length < 2;

const toUnknownVerbError = (verb: string, subcommands: readonly SubVerb[], argv: readonly string[]): UsageError => {
  const [first = ""] = argv;
  const nested = subcommands.filter(({ name }) => name.startsWith(`${first} `));
  const names = (nested.length > 0 ? nested : subcommands).map(({ name }) => name);
  const given = argv.slice(0, nested.length > 0 ? 2 : 1).join(" ");
  return usageError(given || verb, `expected one of ${names.join(", ")}.${suggestName(given, names)}`);
};
