// Arguments with which a command does more than the commands like it that a person has allowed: deletes, overwrites, sends elsewhere, or takes
// code or settings from another file. Rules that allow a command by its first words do not cover them. Pure.
import { isLong } from "./writing-arguments.ts";

const toSet = (words: string): ReadonlySet<string> => new Set(words.split(/\s+/));

/** Subcommands whose next word says what they do, or to what. */
const ACTION_SUBCOMMANDS: Readonly<Record<string, ReadonlySet<string>>> = {
  git: toSet("branch ls-remote push reflog remote stash tag worktree"),
  go: toSet("mod"),
};
const WIDENING_ACTIONS = toSet(
  "add clear delete drop edit expire move prune remove rename rm set-branches set-head set-url",
);

/** Options of git's subcommands: short ones, alone or in a cluster, and long ones. */
const GIT_OPTIONS: Readonly<Record<string, readonly [short: RegExp | undefined, long: readonly string[]]>> = {
  apply: [undefined, ["unsafe-paths", "directory"]],
  archive: [undefined, ["remote"]],
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

/** Package managers, which pass arguments to the scripts of a package. */
export const PACKAGE_RUNNERS = toSet("npm pnpm yarn bun");

/** Returns the arguments that an allowing rule must name. */
export const findWideningArguments = (program: string, args: readonly string[]): readonly string[] => {
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

/** Values of options before the subcommand could be mistaken for it, so that a known one counts there. */
const findSubcommand = (program: string, args: readonly string[]): number =>
  args[0]?.startsWith("-") ? args.findIndex((one) => takesAction(program, one) || Object.hasOwn(GIT_OPTIONS, one)) : 0;
