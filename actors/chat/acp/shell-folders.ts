// Tracks the folders in which a coding agent's shell may be: some agents keep the folder of a command for the next one without saying so.
// Rules and people decide about a command in each of them.
import { isSameFolder } from "#base/system/same-folder.ts";
import { type AgentShell, type AgentToolCall, toChatTool } from "#src/acp/calls.ts";
import { UNKNOWN_FOLDER } from "#src/tools/permission-mode.ts";
import { isConstant, listSimpleCommands } from "#src/tools/processes/parsed-commands.ts";

/** More folders, or a longer one, count as unknown. */
const MAX_FOLDERS = 16;
const MAX_FOLDER_LENGTH = 1_000;
/** Calls whose folders can still be forgotten. */
const MAX_CALLS = 100;

const OUTSIDE_OF_SHELL: ReadonlySet<string> = new Set(["Subshell", "CommandExpansion", "ProcessSubstitution"]);
const FOLDER_COMMANDS: ReadonlySet<string> = new Set(["chdir", "pushd", "popd", "eval"]);
const COMMAND_PREFIXES: ReadonlySet<string> = new Set(["builtin", "command"]);

export class ShellFolders implements AgentShell {
  readonly folder: string;
  /** The folders to which commands have changed, by call. */
  readonly #byCall = new Map<string, readonly string[]>();
  #earlier: readonly string[] = [];
  readonly #refused = new Set<string>();

  /** `folder`: where the agent's shell starts. */
  constructor(folder: string) {
    this.folder = folder;
  }

  /** Records a call that may run, or has run. */
  record(call: AgentToolCall): void {
    const { id, kind, content } = call;
    // A terminal has a folder of its own.
    if (kind !== "execute" || this.#refused.has(id) || content.some(({ type }) => type === "terminal")) return;
    const folders = findFolders(String(toChatTool(call).args.command), this.folder);
    if (folders.length === 0) this.#byCall.delete(id);
    else this.#byCall.set(id, folders);
    if (this.#byCall.size <= MAX_CALLS) return;
    this.#earlier = this.#join("");
    this.#byCall.clear();
  }

  /** Forgets a call that does not run. */
  refuse(id: string): void {
    this.#byCall.delete(id);
    this.#refused.add(id);
  }

  listKeptFolders(call_id: string, command: string): readonly string[] {
    return beginsInFolder(command) ? [] : this.#join(call_id);
  }

  #join(except: string): readonly string[] {
    const others = [...this.#byCall].flatMap(([id, folders]) => (id === except ? [] : folders));
    const all = [...new Set([...this.#earlier, ...others])];
    return all.length > MAX_FOLDERS ? [UNKNOWN_FOLDER] : all;
  }
}

/** Returns where the shell may be after the command, except for `folder`. */
const findFolders = (command: string, folder: string): readonly string[] => {
  const commands = listSimpleCommands(command, OUTSIDE_OF_SHELL);
  // It is too long, or no plain shell text.
  if (commands.length === 0 && command.trim() !== "") return [UNKNOWN_FOLDER];
  return commands.flatMap(({ node: { name, args } }) => {
    if (name === undefined) return [];
    const words = args.map((one) => (one.type === "Word" && isConstant(one) ? one.value : undefined));
    if (name.value === "cd" && isConstant(name)) return findTarget(words, folder);
    const isKnown = isConstant(name) && !FOLDER_COMMANDS.has(name.value);
    return isKnown && !(COMMAND_PREFIXES.has(name.value) && words.some(isFolderCommand)) ? [] : [UNKNOWN_FOLDER];
  });
};

const isFolderCommand = (word: string | undefined): boolean =>
  word === undefined || word === "cd" || FOLDER_COMMANDS.has(word);

/** Returns the folder that the arguments of `cd` name, unless it is `folder`. */
const findTarget = (words: readonly (string | undefined)[], folder: string): readonly string[] => {
  const [target = words.length === 0 ? "~" : undefined, ...more] = words.filter(
    (one) => !/^-[LP]$|^--$/.test(one ?? ""),
  );
  if (target === undefined || more.length > 0 || target.startsWith("-") || target.length > MAX_FOLDER_LENGTH)
    return [UNKNOWN_FOLDER];
  return isSameFolder(target, folder) ? [] : [target];
};

/** True for a text that first changes to a folder by its whole path, and runs nothing if that fails. */
const beginsInFolder = (command: string): boolean => {
  const [, rest] = /^\s*cd\s+(?:"\/[^"$`\\]*"|'\/[^']*'|\/[\w@%+=:,./-]*)\s*&&([\s\S]*)$/.exec(command) ?? [];
  return rest !== undefined && !/[;&\n]|\|\|/.test(rest.replaceAll("&&", "").replace(/[<>]&|&>/g, ""));
};
