// Arguments with which a command does more than the commands like it that a person has allowed: deletes, overwrites, sends elsewhere, or takes
// code or settings from another file. Rules that allow a command by its first words do not cover them. Pure.
import { trimEnd } from "#base/text/trim.ts";
import { isLong } from "./writing-arguments.ts";

const toSet = (words: string): ReadonlySet<string> => new Set(words.split(/\s+/));

/** Subcommands whose next word says what they do, or to what. */
const ACTION_SUBCOMMANDS: Readonly<Record<string, ReadonlySet<string>>> = {
  git: toSet("branch push reflog remote stash tag worktree"),
  go: toSet("mod"),
};
const WIDENING_ACTIONS = toSet(
  "add clear delete drop edit expire move prune remove rename rm set-branches set-head set-url",
);

/** Options of git's subcommands: short ones, alone or in a cluster, and long ones. */
const GIT_OPTIONS: Readonly<Record<string, readonly [short: RegExp | undefined, long: readonly string[]]>> = {
  branch: [/^-[a-zA-Z]*[dDmMcCfu]/, ["delete", "move", "copy", "force", "set-upstream-to", "edit-description"]],
  checkout: [/^-[a-zA-Z]*[fB]/, ["force", "ours", "theirs"]],
  fetch: [/^-[a-zA-Z]*f/, ["force", "prune", "prune-tags", "refmap"]],
  pull: [/^-[a-zA-Z]*f/, ["force", "prune", "refmap"]],
  push: [
    /^-[a-zA-Z]*[fdo]/,
    ["force", "force-with-lease", "delete", "mirror", "prune", "all", "branches", "tags", "repo", "no-verify"],
  ],
  reset: [undefined, ["hard", "merge", "keep"]],
  switch: [/^-[a-zA-Z]*[fC]/, ["force", "force-create", "discard-changes"]],
  tag: [/^-[a-zA-Z]*[df]/, ["delete", "force"]],
  worktree: [/^-[a-zA-Z]*[fB]/, ["force"]],
};
const REFSPEC_SUBCOMMANDS = toSet("fetch pull push");

/** Test runners, linters and formatters. They run, or read their settings from, files that their options name. */
const CHECKERS = toSet("pytest tsc eslint prettier biome vitest jest mocha ruff mypy black rustfmt gofmt");
/** Options that change only how the checkers above select, run and report. A letter is here only if it is harmless for each of them. */
const HARMLESS_SHORT = /^-(?:[vqsxkmltijbghVS]+\d*|n\d+)$/;
const HARMLESS_LONG = toSet(
  `bail changed check co collect-only color colors coverage deselect detectOpenHandles diff disable-warnings durations edition exit exitfirst ext
  failed-first ff fgrep follow-imports forceExit grep help ignore ignore-missing-imports ignore-pattern invert jobs json keyword last-failed lf
  line-length list list-different list-files listTests max-warnings maxfail maxWorkers no-color no-colors no-cov no-header no-summary noEmit
  no-emit nf onlyChanged parallel passWithNoTests pretty preview quiet recursive reruns run runInBand select show-error-codes showlocals silent
  skipLibCheck slow statistics stepwise strict strict-markers sw target-version tb testNamePattern testPathPattern testPathPatterns timeout
  verbose version watch`,
);
/** Package managers pass arguments to the scripts of a package, which are mostly checkers too. */
export const PACKAGE_RUNNERS = toSet("npm pnpm yarn bun");
const SCRIPT_SUBCOMMANDS = toSet("test t tst start stop restart run run-script");

/** A path that leads out of the folder. */
const OUTSIDE = /^[/~]|(?:^|\/)\.\.(?:\/|$)/;

/** Returns the arguments that an allowing rule must name. `folder`: the folder of the command's agent, if known. */
export const findWideningArguments = (program: string, args: readonly string[], folder?: string): readonly string[] => {
  if (CHECKERS.has(program) || runsScript(program, args))
    return args.filter((one) => isOutside(one, folder) || !isHarmless(program, one));
  const start = findSubcommand(program, args);
  const [subcommand = "", action = "", ...rest] = args.slice(start);
  const actions = takesAction(program, subcommand) && WIDENING_ACTIONS.has(action) ? [action] : [];
  if (program !== "git" || !Object.hasOwn(GIT_OPTIONS, subcommand)) return actions;
  const [short, long] = GIT_OPTIONS[subcommand] ?? [undefined, []];
  const isWidening = (one: string): boolean =>
    short?.test(one) ||
    isLong(one, long) ||
    (REFSPEC_SUBCOMMANDS.has(subcommand) && /^\+|:/.test(one)) ||
    (subcommand === "checkout" && (one === "--" || one === "."));
  return [...actions, ...[action, ...rest].filter(isWidening)];
};

/** Whether the word after the subcommand belongs to what an allowing rule must name. */
export const takesAction = (program: string, subcommand: string): boolean =>
  Object.hasOwn(ACTION_SUBCOMMANDS, program) && ACTION_SUBCOMMANDS[program]?.has(subcommand) === true;

/** Options before the subcommand may take a value, so that it is looked for behind them. */
const runsScript = (program: string, args: readonly string[]): boolean =>
  PACKAGE_RUNNERS.has(program) &&
  (args[0]?.startsWith("-") ? args : args.slice(0, 1)).some((one) => SCRIPT_SUBCOMMANDS.has(one));

/** Values of options before the subcommand could be mistaken for it, so that a known one counts there. */
const findSubcommand = (program: string, args: readonly string[]): number =>
  args[0]?.startsWith("-") ? args.findIndex((one) => takesAction(program, one) || Object.hasOwn(GIT_OPTIONS, one)) : 0;

/** Whether an argument, or the value of an option, is a path that leads out of the folder. */
const isOutside = (argument: string, folder: string | undefined): boolean => {
  const path = argument.replace(/^--?[\w.-]+=/, "");
  const root = folder === undefined ? undefined : `${trimEnd(folder, "/")}/`;
  return OUTSIDE.test(root !== undefined && `${path}/`.startsWith(root) ? path.slice(root.length) : path);
};

const isHarmless = (program: string, argument: string): boolean => {
  // The number of processes. For others, the value is an option of an interpreter.
  if (program === "pytest" && /^-n(auto|logical)?$/.test(argument)) return true;
  const [, long] = /^--([^=]+)/.exec(argument) ?? [];
  if (long !== undefined) return HARMLESS_LONG.has(long);
  return !argument.startsWith("-") || argument === "--" || HARMLESS_SHORT.test(argument);
};
