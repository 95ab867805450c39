// Help texts, generated from the table of verbs: by purpose, examples first.
import { suggestName } from "#base/config/suggest.ts";
import { findSubVerb } from "./group.ts";
import { AREAS, type Area, type SubVerb, type Verb } from "./verb.ts";

const EXAMPLES: readonly (readonly [line: string, purpose: string])[] = [
  ["slipway serve", "Run a server on this machine"],
  ["slipway login https://slipway.example.com", "Sign in to a server"],
  ["slipway create dev", "Create a workspace"],
  ["slipway ssh dev", "Open a shell in it"],
  ['slipway chat new "Fix the failing test"', "Start a chat with a coding agent"],
];

/** Names from similar programs or earlier versions, and the equivalent command. */
const ALIASES: Readonly<Record<string, string>> = {
  list: "`slipway ls`",
  delete: "`slipway rm`",
  remove: "`slipway rm`",
  new: "`slipway create`",
  up: "`slipway start`",
  down: "`slipway stop`",
  exec: "`slipway ssh WORKSPACE -- COMMAND`",
  shell: "`slipway ssh`",
  server: "`slipway serve`",
  daemon: "`slipway serve`",
  signin: "`slipway login`",
  signout: "`slipway logout`",
  setup: "`slipway offline setup`, which creates the first owner before the first start",
  user: "`slipway users` with a running server, or `slipway offline users` without one",
  token: "`slipway tokens` with a running server, or `slipway offline tokens` without one",
  task: "`slipway tasks`",
};

/** Lists the commands by purpose; internal ones only with `all`. */
export const formatProgramHelp = (verbs: readonly Verb[], all = false): string => {
  const areas = (Object.keys(AREAS) as Area[]).filter((area) => all || area !== "plumbing");
  const shown = verbs.filter(({ area }) => areas.includes(area));
  const width = Math.max(...shown.map(({ name }) => name.length));
  const column = Math.max(...EXAMPLES.map(([line]) => line.length));
  const formatSection = (area: Area): string[] => [
    `${AREAS[area]}:`,
    ...shown.filter((verb) => verb.area === area).map(({ name, help }) => `  ${name.padEnd(width)}  ${help}`),
    "",
  ];
  return [
    "Slipway: remote development workspaces and AI coding-agent chats, in one program.",
    "",
    "Examples:",
    ...EXAMPLES.map(([line, purpose]) => `  ${line.padEnd(column)}  ${purpose}`),
    "",
    "Usage: slipway COMMAND [arguments]",
    "",
    ...areas.flatMap(formatSection),
    all
      ? "`slipway COMMAND --help` explains a command."
      : "`slipway COMMAND --help` explains a command. `slipway help --all` also lists internal commands.",
  ].join("\n");
};

/** Returns the help of one verb, or of the subcommand that `argv` begins with. */
export const formatVerbHelp = (verb: Verb, argv: readonly string[] = []): string => {
  const subcommand = findSubVerb(verb.subcommands ?? [], argv)?.word;
  const entries = subcommand ? [] : (verb.subcommands ?? []).map(formatEntry);
  const usage = subcommand ? formatUsage(subcommand) : verb.usage;
  return [
    `Usage: slipway ${verb.name} ${usage}`,
    "",
    subcommand?.help ?? verb.help,
    ...(entries.length > 0 ? ["", ...entries] : []),
    ...(verb.details ? ["", verb.details()] : []),
  ].join("\n");
};

/** Returns the error for an unknown command, with the closest match. */
export const formatUnknownVerb = (verbs: readonly Verb[], name: string): string => {
  const replacement = ALIASES[name];
  const parents = verbs
    .filter(({ subcommands }) => subcommands?.some((word) => word.name === name))
    .map((verb) => verb.name);
  const hint =
    replacement !== undefined
      ? ` Use ${replacement}.`
      : parents.length > 0
        ? ` Did you mean ${parents.map((verb) => `\`slipway ${verb} ${name}\``).join(", or ")}?`
        : suggestName(
            name,
            verbs.map((verb) => verb.name),
          );
  return `slipway: unknown command ${name}.${hint} \`slipway help\` lists the commands.\n`;
};

/** Returns a subcommand with its arguments, as typed after its command. */
export const formatUsage = ({ name, usage }: Pick<SubVerb, "name" | "usage">): string => `${name} ${usage}`.trimEnd();

const formatEntry = (subcommand: SubVerb): string => `  ${formatUsage(subcommand)}\n      ${subcommand.help}`;
