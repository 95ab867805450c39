// Computes completions for a command line: commands, subcommands, unused flags, and names from the server (rule OP-11). Everything except
// names comes from the table of verbs; requests to the server have a short timeout.
import { withSecretFiles } from "#base/config/secret-files.ts";
import { toFlag } from "#base/config/setting.ts";
import { SERVER_SETTINGS } from "#base/config/settings.ts";
import { findSubVerb } from "../group.ts";
import type { SubVerb, Verb, VerbInput } from "../verb.ts";
import { FILES_CANDIDATE, listNames, type Names } from "./names.ts";

type Candidate = { text: string; help?: string };
/** A command's usage, flags, and the kind of names that its first argument completes to. */
type CommandInfo = { usage: string; flags: readonly string[]; completes: Names | undefined; word: string };

/** Returns one line per candidate, with its description after a tab. The last word is the one being typed. */
export const formatCompletions = async (
  verbs: readonly Verb[],
  input: VerbInput,
  words: readonly string[],
): Promise<string[]> => {
  const typed = words.at(-1) ?? "";
  const found = await listCandidates(verbs, input, words.slice(0, -1), typed);
  return found
    .filter(({ text }) => text === FILES_CANDIDATE || text.startsWith(typed))
    .map(({ text, help }) => (help ? `${text}\t${help}` : text));
};

const listCandidates = async (
  verbs: readonly Verb[],
  input: VerbInput,
  before: readonly string[],
  typed: string,
): Promise<Candidate[]> => {
  const [name, ...rest] = before;
  if (name === undefined) return [{ text: "help", help: "Explain a command." }, ...verbs.map(toCandidate)];
  if (name === "help") return before.length === 1 ? verbs.map(toCandidate) : [];
  const verb = verbs.find((one) => one.name === name);
  if (!verb) return [];
  if (!verb.subcommands) return completeArgument(input, toCommandInfo(verb), rest, typed);
  const found = findSubVerb(verb.subcommands, rest);
  if (found) return completeArgument(input, toSubcommandInfo(verb, found.word), found.rest, typed);
  const ownArguments = verb.isCalledAlone ? await completeArgument(input, toCommandInfo(verb), rest, typed) : [];
  return [...listNextWords(verb.subcommands, rest), ...ownArguments];
};

/** Returns the possible next words: for `apps list` and `apps create`, first `apps`, then `list` and `create`. */
const listNextWords = (words: readonly SubVerb[], before: readonly string[]): Candidate[] => {
  const prefix = before.map((word) => `${word} `).join("");
  const next = words
    .filter(({ name }) => name.startsWith(prefix))
    .map(({ name, help }) => ({ text: name.slice(prefix.length), help }));
  const fullNames = next.filter(({ text }) => !text.includes(" "));
  const firstWords = next.filter(({ text }) => text.includes(" ")).map(({ text }) => text.slice(0, text.indexOf(" ")));
  return [...fullNames, ...[...new Set(firstWords)].map((text) => ({ text }))];
};

const toCandidate = ({ name, help }: Pick<Verb, "name" | "help">): Candidate => ({ text: name, help });

const FLAG_PATTERN = /(?<![\w-])--[a-z][a-z-]*/g;
const findFlags = (text: string): string[] => [...new Set([...text.matchAll(FLAG_PATTERN)].map(([flag]) => flag))];

const toCommandInfo = (verb: Verb): CommandInfo => {
  const helpText = `${verb.usage}\n${verb.details?.() ?? ""}`;
  const settings = helpText.includes("Takes the settings of `serve`")
    ? Object.keys(withSecretFiles(SERVER_SETTINGS)).map(toFlag)
    : [];
  return {
    usage: verb.usage,
    flags: [...new Set([...findFlags(helpText), ...settings, "--help"])],
    completes: verb.completes,
    word: verb.name,
  };
};

const toSubcommandInfo = (verb: Verb, { usage, completes, name }: SubVerb): CommandInfo => {
  const isClient = verb.details?.().includes("--output") === true;
  const common = isClient ? ["--output", "--json", "--url", "--help"] : ["--data-dir", "--json", "--help"];
  return { usage, flags: [...findFlags(usage), ...common], completes, word: name };
};

/** Completes within a command: a flag's value, an argument, or another flag. */
const completeArgument = async (
  input: VerbInput,
  command: CommandInfo,
  before: readonly string[],
  typed: string,
): Promise<Candidate[]> => {
  // Arguments after `--` belong to another program.
  if (before.includes("--")) return [{ text: FILES_CANDIDATE }];
  const last = before.at(-1) ?? "";
  const value = findPlaceholder(command, last);
  if (value !== undefined) return listValues(input, before, last, value);
  if (typed.startsWith("-")) {
    const isRepeatable = (flag: string): boolean =>
      command.usage.includes(`[${flag} ${findPlaceholder(command, flag)}]...`);
    return command.flags.filter((flag) => !before.includes(flag) || isRepeatable(flag)).map((text) => ({ text }));
  }
  const earlierArguments = before.filter(
    (word, index) => !word.startsWith("-") && findPlaceholder(command, before[index - 1] ?? "") === undefined,
  );
  const names =
    command.completes !== undefined && earlierArguments.length === 0
      ? await listNames(input, before, command.completes, command.word)
      : [];
  const expected = parseUsage(command.usage)[earlierArguments.length] ?? "";
  return [...names, ...splitChoices(expected), ...(isFilePlaceholder(expected) ? [{ text: FILES_CANDIDATE }] : [])];
};

/** Returns the placeholder of a flag's value from the usage; undefined for switches and non-flags. */
const findPlaceholder = ({ usage, flags }: CommandInfo, flag: string): string | undefined => {
  if (flag === "--output") return "json|table";
  if (flag === "--url") return "URL";
  if (!flag.startsWith("--") || !flags.includes(flag)) return undefined;
  return new RegExp(`(?<![\\w-])${flag} ([^\\s\\]-][^\\s\\]]*)`).exec(usage)?.[1];
};

/** Returns the arguments in a usage, without flags, in order. */
const parseUsage = (usage: string): string[] =>
  usage
    .replaceAll(/\[[^\]]*--[^\]]*\](\.\.\.)?|--[\w-]+ \S+/g, " ")
    .split(" ")
    .filter(Boolean);

const FLAG_NAMES: Readonly<Record<string, Names>> = {
  "--template": "template",
  "--workspace": "workspace",
  "--user": "user",
  "--group": "group",
  "--scope": "scope",
  "--organization": "organization",
  "--model": "model",
  "--set": "role",
  "--add": "role",
  "--remove": "role",
  "--roles": "role",
};

const listValues = async (
  input: VerbInput,
  before: readonly string[],
  flag: string,
  value: string,
): Promise<Candidate[]> => {
  const names = FLAG_NAMES[flag];
  if (names !== undefined) return listNames(input, before, names);
  return isFilePlaceholder(value) ? [{ text: FILES_CANDIDATE }] : splitChoices(value);
};

/** Returns the words of `a|b|c`; none for a placeholder such as NAME. */
const splitChoices = (expected: string): Candidate[] => {
  const choices = expected.replaceAll(/[[\]]/g, "");
  return /^[a-z_-]+(\|[a-z_-]+)+$/.test(choices) ? choices.split("|").map((text) => ({ text })) : [];
};

const isFilePlaceholder = (expected: string): boolean => /FILE|FOLDER|BACKUP|PATH/.test(expected);
