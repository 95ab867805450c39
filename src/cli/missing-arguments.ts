// Missing arguments: prompts for them on a terminal, otherwise throws (rule CV-18).
import { UsageError, usageError } from "#base/usage-error.ts";
import { Prompter } from "./ask.ts";
import { VerbFailure } from "./failure.ts";
import { getStreams } from "./streams.ts";
import { toPlainLine } from "./text.ts";
import type { VerbInput } from "./verb.ts";

/** Maximum number of choices shown with a question; more would hide it. */
const MAX_SHOWN_CHOICES = 20;

/** True if a user can be prompted. */
export const canPrompt = ({ streams }: Pick<VerbInput, "streams">): boolean => streams?.inputIsTerminal === true;

/**
 * Returns the only word of a command, or undefined if it is missing and can be prompted for. Throws UsageError if it is missing and no
 * prompt is possible, or if there are more words.
 */
export const takeOneWord = (
  input: Pick<VerbInput, "streams">,
  words: readonly string[],
  expected: string,
): string | undefined => {
  const [word, more] = words;
  if (more !== undefined) throw usageError(more, "unexpected argument");
  if (word === undefined && !canPrompt(input)) throw usageError("argument", `expected ${expected}`);
  return word;
};

/** Prompts for a missing `word`. Shows `choices` if they are known. Throws VerbFailure for an empty answer. */
export const promptIfMissing = async (
  input: VerbInput,
  word: string | undefined,
  question: string,
  choices: () => Promise<readonly string[]> = async () => [],
): Promise<string> => {
  if (word !== undefined) return word;
  const knownChoices = await choices().catch(() => []);
  const list = knownChoices.slice(0, MAX_SHOWN_CHOICES).map(toPlainLine).join(", ");
  const more = knownChoices.length > MAX_SHOWN_CHOICES ? ", ..." : "";
  await using prompter = new Prompter(getStreams(input), input.printError);
  const answer = await prompter.promptLine(
    knownChoices.length > 0 ? `${question} (${list}${more}): ` : `${question}: `,
  );
  if (answer === "") throw new VerbFailure("nothing was typed");
  return answer;
};

/** Asks the user to type the name of the thing that the command deletes. Throws VerbFailure for another name. */
export const confirmByName = async (input: VerbInput, name: string, consequence: string): Promise<void> => {
  await using prompter = new Prompter(getStreams(input), input.printError);
  const typed = await prompter.promptLine(`${consequence} Type its name: `);
  if (typed !== name) throw new VerbFailure("the name doesn't match, so nothing was deleted");
};

/** Throws UsageError without `--yes` if there is no terminal for a confirmation. `what` as in "nothing was deleted". */
export const requireConfirmable = (input: VerbInput, yes: boolean, what = "deleted"): void => {
  if (yes || canPrompt(input)) return;
  const sentence = `nothing was ${what}: without a terminal, pass --yes to confirm`;
  throw new UsageError([{ name: "--yes", from: "command line", detail: "is missing" }], sentence);
};

/** Asks for confirmation. Throws VerbFailure for any answer except yes. */
export const requireConfirmation = async (input: VerbInput, question: string): Promise<void> => {
  await using prompter = new Prompter(getStreams(input), input.printError);
  const answer = await prompter.promptLine(`${question} (yes/no): `);
  if (!/^y(es)?$/i.test(answer)) throw new VerbFailure("nothing was changed");
};
