// Applies a chat's rules: decides whether a tool runs, requires approval, or is denied (rules PE-1 to PE-4). Pure. A command matches a rule
// only if each of its simple commands is understood and matched; text that cannot be parsed requires approval.
import {
  type ChatPermissions,
  MAX_RULE_COMMAND_CHARS,
  type PermissionAction,
  type PermissionRule,
} from "#schema/chats/chat-permissions.ts";
import {
  type CallContext,
  findDefaultAction,
  getCommand,
  getCommandInFolder,
  getShellFolders,
  isEdit,
  namesAgent,
  UNKNOWN_FOLDER,
} from "./permission-mode.ts";
import { findUnknownArguments } from "./processes/harmless-arguments.ts";
import { type CommandWords, parsePlainCommands } from "./processes/plain-commands.ts";
import {
  findKindWords,
  getBaseName,
  isRunner,
  readsProgramFromInput,
  toFirstWords,
} from "./processes/program-kinds.ts";
import { findWideningArguments } from "./processes/widening-arguments.ts";
import { findWritingArgument, findWritingArguments } from "./processes/writing-arguments.ts";
import { isSideEffectFree } from "./registry.ts";

const STRICTNESS: Readonly<Record<PermissionAction, number>> = { allow: 0, ask: 1, deny: 2 };
const findStrictest = (actions: readonly PermissionAction[]): PermissionAction =>
  actions.reduce((one, other) => (STRICTNESS[other] > STRICTNESS[one] ? other : one), "allow");

const UNRESTRICTED: CallContext = { use: "yes", folder: undefined };

/** Returns whether a call is allowed, requires approval, or is denied. Without permissions, every call is allowed. */
export const decidePermission = (
  permissions: ChatPermissions | null,
  call: { readonly tool_name: string; readonly args: unknown },
  context: CallContext = UNRESTRICTED,
): PermissionAction => {
  if (permissions === null) return "allow";
  const { tool_name, args } = call;
  const rules = permissions.rules.filter(({ tool }) => matchesTool(tool, tool_name));
  const fallback = findDefaultAction(permissions.default, call, context, isSideEffectFree(tool_name));
  const toolRule = rules.find(({ command }) => command === undefined)?.action ?? fallback;
  const commandRules = rules.filter(({ command }) => command !== undefined);
  if (commandRules.length === 0) return toolRule;
  // If it is uncertain which programs run, the action is at least "ask" when a rule restricts commands.
  const uncertainAction = commandRules.some(({ action }) => action !== "allow")
    ? findStrictest([toolRule, "ask"])
    : toolRule;
  const commands = parsePlainCommands(getCommandInFolder(args, context.folder));
  if (commands === undefined) return uncertainAction;
  // The folder is that of the workspace's first agent.
  const folder = namesAgent(args) ? undefined : context.folder;
  const decideWithoutRule = (words: CommandWords) =>
    isRunner(words) || findWriteArgument(words) !== undefined ? uncertainAction : fallback;
  return findStrictest(commands.map((words) => decideByRules(rules, words, folder) ?? decideWithoutRule(words)));
};

/** True for an edit that runs without approval only because the chat's mode accepts edits. */
export const isAcceptedByMode = (
  permissions: ChatPermissions | null,
  call: { readonly tool_name: string; readonly args: unknown },
): boolean =>
  permissions?.default === "accept_edits" &&
  isEdit(call.tool_name) &&
  decidePermission({ default: "ask", rules: permissions.rules }, call) !== "allow";

/** Returns the action of the first matching rule; undefined if none matches, or if the match is unreliable. */
const decideByRules = (
  rules: readonly PermissionRule[],
  words: CommandWords,
  folder: string | undefined,
): PermissionAction | undefined => {
  const found = rules.find((rule) => rule.command === undefined || matchesCommand(words, rule.command, rule));
  if (found?.action !== "allow") return found?.action;
  const isUnreliable = found.command === undefined ? isRunner(words) : isBeyond(words, found.command, folder);
  return isUnreliable ? undefined : "allow";
};

/** Denying and asking rules match a program under any path; allowing rules only as written. */
const matchesCommand = (
  words: CommandWords,
  command: string,
  { action, exact }: Pick<PermissionRule, "action" | "exact">,
): boolean => {
  const ruleWords = parsePlainCommands(command)?.[0] ?? [];
  if (exact && ruleWords.length !== words.length) return false;
  const [program = "", ...rest] = words;
  const names = action === "allow" ? [program] : [program, getBaseName(program)];
  return (
    ruleWords.length > 0 && ruleWords.every((word, at) => (at === 0 ? names.includes(word) : rest[at - 1] === word))
  );
};

/** True if an argument may make the program write files, run others or do more, and the allowing rule does not contain that argument. */
const isBeyond = (words: CommandWords, command: string, folder: string | undefined): boolean => {
  const [program = "", ...args] = words;
  const named = parsePlainCommands(command)?.[0] ?? [];
  const name = getBaseName(program);
  const beyond = [...findWritingArguments(name, args), ...findWideningArguments(name, args)];
  return (
    beyond.some((argument) => !named.includes(argument)) || findUnknownArguments(words, named, name, folder).length > 0
  );
};

const findWriteArgument = ([program = "", ...args]: CommandWords): string | undefined =>
  findWritingArgument(getBaseName(program), args);

const matchesTool = (pattern: string, name: string): boolean =>
  pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : pattern === name;

/** True for text that a rule can match: one plain command. */
export const isCommandPrefix = (text: string): boolean =>
  parsePlainCommands(text)?.length === 1 && !/[;|&\n]/.test(text);

/**
 * Returns the rules that store an answer: one for the tool, or one for each command in the text. A command's rule matches commands with the
 * same beginning up to the first argument, or exactly this command if further arguments could be other targets or another program. Returns
 * none if a command is not plain, is too long for a rule, or takes a program from its input, and for a refusal of several commands, since
 * each of them alone may be fine. An allowed command in another folder counts as two, of which the first changes the folder; other actions
 * hold in every folder.
 */
export const makeRules = (
  { tool_name, args }: { readonly tool_name: string; readonly args: unknown },
  action: PermissionAction,
  command?: string,
): readonly PermissionRule[] => {
  if (tool_name !== "execute") return [{ tool: tool_name, action }];
  if (command !== undefined) return [{ tool: tool_name, command, action }];
  const commands =
    parsePlainCommands(action === "allow" ? getCommandInFolder(args, undefined) : getCommand(args)) ?? [];
  if (commands.flat().some((word) => word.includes("'")) || (action !== "allow" && commands.length > 1)) return [];
  if (action === "allow" && commands.some(readsProgramFromInput)) return [];
  // The rule would hold in every folder.
  if (action === "allow" && getShellFolders(args).includes(UNKNOWN_FOLDER)) return [];
  const rulesByText = new Map(
    commands.map((words) => {
      const kind = action === "allow" ? findKindWords(words) : toFirstWords(words);
      return [(kind ?? words).map(quoteWord).join(" "), kind === undefined];
    }),
  );
  if ([...rulesByText.keys()].some((one) => one.length > MAX_RULE_COMMAND_CHARS)) return [];
  return [...rulesByText].map(([one, exact]) => ({
    tool: tool_name,
    command: one,
    action,
    ...(exact ? { exact } : {}),
  }));
};

const quoteWord = (word: string): string => (/^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word}'`);
