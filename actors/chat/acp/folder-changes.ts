// Finds the changes of the shell's folder in a shell text. Pure.
import { UNKNOWN_FOLDER } from "#src/tools/permission-mode.ts";
import { findSimpleCommands, isConstant } from "#src/tools/processes/parsed-commands.ts";

type FolderChanges = {
  /** The folders as named, in order. */
  readonly targets: readonly string[];
  /** True if later commands may change the folder without naming one. */
  readonly hasHooks: boolean;
};
type FoundCommand = NonNullable<ReturnType<typeof findSimpleCommands>>[number]["node"];

const OUTSIDE_OF_SHELL: ReadonlySet<string> = new Set(["Subshell", "CommandExpansion", "ProcessSubstitution"]);
const FOLDER_COMMANDS: ReadonlySet<string> = new Set(["chdir", "pushd", "popd", "eval"]);
const SOURCE_COMMANDS: ReadonlySet<string> = new Set([".", "source"]);
const HOOK_COMMANDS: ReadonlySet<string> = new Set(["alias", "trap"]);
const COMMAND_PREFIXES: ReadonlySet<string> = new Set(["builtin", "command"]);
/** Settings of shells that change what `cd`, or any command, does. */
const OPTION_COMMANDS: ReadonlySet<string> = new Set(["enable", "mapfile", "readarray", "set", "setopt", "shopt"]);
const HOOK_OPTION = /^(?:-[A-Za-z]*[CPn]|physical|auto_?cd|cdable_?vars|chase_?links)$/i;
const DEFINES_CD = /(?:^|[;&|{(\n]|\b(?:then|else|do)\s)[^\S\n]*(?:function\s+cd\b|cd\s*\(\s*\))/;
const HOOK_VARIABLE = /^(?:CDPATH|PROMPT_COMMAND)\+?=./i;
/** Scripts that people load in each command: of a Python environment, and hidden ones in the home, which no plain edit changes. */
const TRUSTED_SCRIPT = /(?:^|\/)(?:bin|Scripts)\/activate$|^(?:~|\$HOME|\$\{HOME\})\/\.\w|^\$NVM_DIR\/nvm\.sh$/;

/** Returns the changes in the shell itself. Texts that are too long, or no plain shell text, lead to an unknown folder. */
export const findFolderChanges = (command: string): FolderChanges => {
  const commands = findSimpleCommands(command, OUTSIDE_OF_SHELL);
  if (commands === undefined) return { targets: [UNKNOWN_FOLDER], hasHooks: false };
  return {
    targets: commands.flatMap(({ node }) => findTargets(node)),
    hasHooks: DEFINES_CD.test(command) || commands.some(({ node }) => setsHook(node)),
  };
};

/** Returns the words of the arguments; undefined for those known only at run time. */
const listWords = ({ args }: FoundCommand): readonly (string | undefined)[] =>
  args.map((one) => {
    if (one.type === "Word") return isConstant(one) ? one.value : undefined;
    return one.value?.type === "Word" && isConstant(one.value) ? `${one.name}=${one.value.value}` : undefined;
  });

const findTargets = (node: FoundCommand): readonly string[] => {
  const { name, args } = node;
  if (name === undefined) return [];
  const words = listWords(node);
  if (!isConstant(name)) return [UNKNOWN_FOLDER];
  if (name.value === "cd") return [findTarget(words)];
  if (SOURCE_COMMANDS.has(name.value))
    return TRUSTED_SCRIPT.test((args[0]?.text ?? "").replace(/^["']|["']$/g, "")) ? [] : [UNKNOWN_FOLDER];
  const isKnown = !FOLDER_COMMANDS.has(name.value);
  return isKnown && !(COMMAND_PREFIXES.has(name.value) && words.some(isFolderCommand)) ? [] : [UNKNOWN_FOLDER];
};

const isFolderCommand = (word: string | undefined): boolean =>
  word === undefined || word === "cd" || [FOLDER_COMMANDS, SOURCE_COMMANDS, HOOK_COMMANDS].some((one) => one.has(word));

/** Returns the folder that the arguments of `cd` name. With `-P`, links decide what `..` means later. */
const findTarget = (words: readonly (string | undefined)[]): string => {
  const [target = words.length === 0 ? "~" : undefined, ...more] = words.filter((one) => !/^-L$|^--$/.test(one ?? ""));
  return target === undefined || target === "" || more.length > 0 || target.startsWith("-") ? UNKNOWN_FOLDER : target;
};

const setsHook = (node: FoundCommand): boolean => {
  if ([...node.prefix, ...node.args].some((one) => "text" in one && HOOK_VARIABLE.test(one.text))) return true;
  const all = [node.name?.value, ...listWords(node)];
  const [name = "", ...words] = all.slice(all.findIndex((word) => !COMMAND_PREFIXES.has(word ?? "")));
  if (OPTION_COMMANDS.has(name)) return words.some((word) => HOOK_OPTION.test(word ?? ""));
  if (name === "alias")
    return words.some((word) => word === undefined || /^cd=/.test(word) || changesFolder(word.replace(/^[^=]*=/, "")));
  return name === "trap" && setsTrap(words.filter((word) => word !== "--"));
};

/** A trap for the end of the shell changes nothing in it. */
const setsTrap = ([body, ...signals]: readonly (string | undefined)[]): boolean =>
  !signals.every((one) => one === "EXIT" || one === "0") && (body === undefined || changesFolder(body));

const changesFolder = (command: string): boolean => {
  const { targets, hasHooks } = findFolderChanges(command);
  return targets.length > 0 || hasHooks;
};
