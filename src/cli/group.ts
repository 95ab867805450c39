// Verbs whose first word says what to do: each word has a file, which is loaded when it is asked for.
import { didYouMean } from "#base/config/nearest.ts";
import { usageError } from "#base/usage-error.ts";
import type { RunVerb, SubVerb, Verb } from "./verb.ts";

type Group = Pick<Verb, "name" | "help" | "details"> & { words: readonly SubVerb[] };

/** The verb that hands its arguments on to one of its words. */
export const group = ({ name, help, details, words }: Group): Verb => ({
  name,
  help,
  words,
  usage: `${words.map((word) => word.name).join("|")} ...`,
  ...(details ? { details } : {}),
  load: async () => ({ run: handOn(name, words) }),
});

/** Throws UsageError for a word that the verb does not know. */
const handOn =
  (verb: string, words: readonly SubVerb[]): RunVerb =>
  async (input) => {
    const [name = "", ...argv] = input.argv;
    const word = words.find((one) => one.name === name);
    const names = words.map((one) => one.name);
    if (!word) throw usageError(name || verb, `expected one of ${names.join(", ")}.${didYouMean(name, names)}`);
    const { run } = await word.load();
    return run({ ...input, argv });
  };
