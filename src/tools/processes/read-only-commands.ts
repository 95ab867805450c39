// Decides whether a shell text only reads, for workspaces whose system cannot restrict programs: every command is on a list of programs
// that write nothing, no argument makes it write, and the shell writes nothing itself (rule PM-7). Pure.
import { type Command, forEachChild, parse, type Redirection, type SyntaxNode, type Word } from "unbash";
import { isSameFolder } from "#base/system/same-folder.ts";
import { isConstant, isTooCostly } from "./parsed-commands.ts";
import { findShellProblem } from "./read-only-syntax.ts";
import { canWrite, findWritingArgument } from "./writing-arguments.ts";

/** Stands before a command that another agent runs, in its folder, as if it were a program. Rules can name it, and no program has its name. */
export const AGENT_STEP = "@agent";

/** Programs that only read unless an argument says otherwise. */
const READ_ONLY_PROGRAMS = new Set([
  AGENT_STEP,
  ...(
    "[ basename cat cd cmp column cut df diff dirname du echo egrep false fgrep file find git grep head id jq ls nl printf pwd readlink " +
    "realpath rg sort stat tac tail test tr tree true type uname wc which whoami"
  ).split(" "),
]);
const READ_ONLY_GIT =
  /^(blame|cat-file|describe|diff|grep|log|ls-files|ls-tree|rev-list|rev-parse|shortlog|show|status)$/;

const QUIET_GIT = /^(?:-P|--no-pager|--no-optional-locks)$/;

/** Returns why the text is not read-only; undefined if it is. `folder`: the folder in which it runs, if known. */
export const findWriteReason = (command: string, folder?: string): string | undefined => {
  if (isTooCostly(command)) return "it is too long to be checked";
  const script = parse(command);
  if (script.errors && script.errors.length > 0) return "it is not a plain shell command";
  let found: string | undefined;
  const walk = (node: SyntaxNode, around: string, outer: Shell): void => {
    const source = node.type === "Script" ? (node.source ?? around) : around;
    found ??= findProblem(node, source, folder);
    if (found !== undefined) return;
    const shell = SUBSHELLS.has(node.type) ? { ...outer } : outer;
    // In a loop, what comes first also comes after the rest.
    if (LOOPS.has(node.type)) shell.isElsewhere ||= leavesFolder(node, folder);
    // A folder with the files of a bare repository can be part of a clone, and its configuration names programs that git runs.
    if (node.type === "Command" && node.name?.value === "git" && shell.isElsewhere) found = FOREIGN_GIT;
    forEachChild(node, (child) => walk(child, source, shell));
    if (node.type === "Command") shell.isElsewhere ||= leavesFolder(node, folder);
  };
  walk(script, command, { isElsewhere: false });
  return found;
};

const FOREIGN_GIT = "git may run programs that a repository in another folder configures";

/** Whether a shell may be in another folder than the one in which the text runs. */
type Shell = { isElsewhere: boolean };

const SUBSHELLS: ReadonlySet<string> = new Set(["Subshell", "CommandExpansion", "ProcessSubstitution"]);
const LOOPS: ReadonlySet<string> = new Set(["For", "While"]);

/** Whether some command in the node, except in subshells, changes to another folder, or to another agent. */
const leavesFolder = (node: SyntaxNode, folder: string | undefined): boolean => {
  if (SUBSHELLS.has(node.type)) return false;
  if (node.type === "Command" && node.name?.value === AGENT_STEP) return true;
  if (node.type === "Command" && node.name?.value === "cd" && !staysInFolder(node, folder)) return true;
  let leaves = false;
  forEachChild(node, (child) => {
    leaves ||= leavesFolder(child, folder);
  });
  return leaves;
};

const staysInFolder = ({ args: [target, ...more] }: Command, folder: string | undefined): boolean =>
  target?.type === "Word" && more.length === 0 && isConstant(target) && isSameFolder(target.value, folder);

const findProblem = (node: SyntaxNode, source: string, folder: string | undefined): string | undefined => {
  const shellProblem = findShellProblem(node, source);
  if (shellProblem !== undefined) return shellProblem;
  if (node.type === "Redirected") return node.redirects.map(findRedirectionProblem).find((one) => one !== undefined);
  if (node.type !== "Command") return undefined;
  const { name, args, redirects } = node;
  if (name === undefined || !isConstant(name)) return "a program is only known when it runs";
  // A path could lead to a different program of the same name.
  if (!READ_ONLY_PROGRAMS.has(name.value)) return `"${name.value}" is not one of the programs that only read`;
  const words = args.flatMap((one) => (one.type === "Word" ? [one] : []));
  if (name.value === "git") {
    const first = words[skipGitOptions(words, folder)];
    if (!first || !isConstant(first) || !READ_ONLY_GIT.test(first.value)) return "git is only run for what looks";
  }
  const worst =
    findUnknownArgument(name.value, words)?.text ??
    findWritingArgument(
      name.value,
      words.map((word) => word.value),
    );
  if (worst !== undefined) return `"${name.value} ${worst}" may write`;
  return redirects.map(findRedirectionProblem).find((one) => one !== undefined);
};

/** Returns the number of words before the subcommand that change nothing about what git does. */
const skipGitOptions = (words: readonly Word[], folder: string | undefined): number => {
  let at = 0;
  for (;;) {
    const [value, next] = words.slice(at, at + 2).map((one) => (isConstant(one) ? one.value : undefined));
    if (value !== undefined && QUIET_GIT.test(value)) at += 1;
    else if (value === "-C" && next !== undefined && isSameFolder(next, folder)) at += 2;
    else return at;
  }
};

/** Operators of `test` that follow a value. */
const OPERATOR = /^(?:[=<>]|==|!=|\)|-(?:eq|ne|lt|le|gt|ge|nt|ot|ef|a|o))$/;

/** Formats of `printf` that calculate with no argument: some shells evaluate numbers as arithmetic. */
const TEXT_FORMAT = /^(?!-)(?:[^%]|%-?\d*(?:\.\d+)?[sbqc%])*$/;

/** Returns an argument that could be a writing one, and is only known when the command runs. */
const findUnknownArgument = (program: string, words: readonly Word[]): Word | undefined => {
  if (!canWrite(program)) return undefined;
  if (program === "printf" && words[0] && isConstant(words[0]) && TEXT_FORMAT.test(words[0].value)) return undefined;
  if (program !== "test" && program !== "[") return words.find((word) => !isConstant(word));
  // A value between quotes is one word, and cannot be `-v` with a name after it if an operator or nothing follows.
  const isValue = (word: Word, at: number): boolean => {
    const next = words[at + 1];
    const isLast = next === undefined || (program === "[" && at + 2 === words.length);
    return word.text.startsWith('"') && word.parts?.length === 1 && (isLast || OPERATOR.test(next.text));
  };
  return words.find((word, at) => !isConstant(word) && !isValue(word, at));
};

const findRedirectionProblem = (one: Redirection): string | undefined => {
  if (one.type !== "Redirect" || one.operator === "<") return undefined;
  const target = one.target && isConstant(one.target) ? one.target.value : "";
  const isCopy = (one.operator === ">&" || one.operator === "<&") && /^(\d|-)$/.test(target);
  return isCopy || target === "/dev/null" ? undefined : "its output goes into a file";
};
