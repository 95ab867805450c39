// Help texts, printed from the table of verbs.
import type { Verb } from "./verb.ts";

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

/** One verb in full. */
export const verbHelp = (verb: Verb): string => {
  const details = verb.details ? `\n\n${verb.details()}` : "";
  return `Usage: slipway ${verb.name} ${verb.usage}\n\n${verb.help}${details}`;
};
