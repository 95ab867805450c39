// Verbs whose first word says what to do: each word has a file, which is loaded when it is asked for.
import { didYouMean } from "#base/config/nearest.ts";
import { usageError } from "#base/usage-error.ts";
import type { RunVerb } from "./verb.ts";

type Words = Readonly<Record<string, () => Promise<{ run: RunVerb }>>>;

/** The verb that hands its arguments on to the file of its first word. Throws UsageError for a word that it does not know. */
export const subVerbs =
  (verb: string, words: Words): RunVerb =>
  async (input) => {
    const [word = "", ...argv] = input.argv;
    const load = words[word];
    const names = Object.keys(words);
    if (!load) throw usageError(word || verb, `expected one of ${names.join(", ")}.${didYouMean(word, names)}`);
    const { run } = await load();
    return run({ ...input, argv });
  };
