// Decides whether a shell text only reads, for workspaces whose system cannot restrict programs: every command is on a list of programs
// that write nothing, no argument makes it write, and the shell writes nothing itself (rule PM-7). Pure.
import { type Command, forEachChild, parse, type Redirection, type SyntaxNode, type Word } from "unbash";
import { isSameFolder } from "#base/system/same-folder.ts";
import { isConstant } from "./parsed-commands.ts";
import { findShellProblem } from "./read-only-syntax.ts";
import { canWrite, findWritingArgument } from "./writing-arguments.ts";

const MAX_COMMAND_CHARS = 6_000;

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

/** Returns why the text is not read-only; undefined if it is. `folder`: the folder in which it runs, if known. */
export const findWriteReason = (command: string, folder?: string): string | undefined => {
  if (command.length > MAX_COMMAND_CHARS) return "it is too long to be checked";
  const script = parse(command);
  if (script.errors && script.errors.length > 0) return "it is not a plain shell command";
  let found: string | undefined;
  let [runsGit, changesFolder] = [false, false];
  const walk = (node: SyntaxNode, around: string): void => {
    const source = node.type === "Script" ? (node.source ?? around) : around;
    found ??= findProblem(node, source);
    if (found !== undefined) return;
    if (node.type === "Command") {
      runsGit ||= node.name?.value === "git";
      changesFolder ||= node.name?.value === AGENT_STEP;
      changesFolder ||= node.name?.value === "cd" && !staysInFolder(node, folder);
    }
    forEachChild(node, (child) => walk(child, source));
  };
  walk(script, command);
  // A folder with the files of a bare repository can be part of a clone, and its configuration names programs that git runs.
  if (runsGit && changesFolder) found ??= "git may run programs that a repository in another folder configures";
  return found;
};

const staysInFolder = ({ args: [target, ...more] }: Command, folder: string | undefined): boolean =>
  target?.type === "Word" && more.length === 0 && isConstant(target) && isSameFolder(target.value, folder);

const findProblem = (node: SyntaxNode, source: string): string | undefined => {
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
    const first = words[0];
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
