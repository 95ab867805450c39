// Help texts, printed from the table of verbs.
import { wordIn } from "./group.ts";
import type { SubVerb, Verb } from "./verb.ts";

/** The list of verbs. */
export const programHelp = (verbs: readonly Verb[]): string => {
  const width = Math.max(...verbs.map((verb) => verb.name.length));
  const rows = verbs.map((verb) => `  ${verb.name.padEnd(width)}  ${verb.help}`);
  return [
    "Slipway: remote development workspaces and AI coding-agent chats, in one program.",
    "",
    "Usage: slipway VERB [arguments]",
    "",
    ...rows,
    "",
    "`slipway VERB --help` says more. To start: `slipway serve`.",
  ].join("\n");
};

/** One verb in full, or what the word does that `argv` begins with. */
export const verbHelp = (verb: Verb, argv: readonly string[] = []): string => {
  const word = wordIn(verb.words ?? [], argv)?.word;
  const words = word ? [] : (verb.words ?? []).map(described);
  const usage = word ? called(word) : verb.usage;
  return [
    `Usage: slipway ${verb.name} ${usage}`,
    "",
    word?.help ?? verb.help,
    ...(words.length > 0 ? ["", ...words] : []),
    ...(verb.details ? ["", verb.details()] : []),
  ].join("\n");
};

/** A word with its arguments, as it is typed behind its verb. */
export const called = ({ name, usage }: Pick<SubVerb, "name" | "usage">): string => `${name} ${usage}`.trimEnd();

const described = (word: SubVerb): string => `  ${called(word)}\n      ${word.help}`;
