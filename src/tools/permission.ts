// Applies a chat's rules: decides whether a tool runs, requires approval, or is denied (rules PE-1 to PE-4). Pure. A command matches a rule
// only if each of its simple commands is understood and matched; text that cannot be parsed requires approval.
import type { ChatPermissions, PermissionAction, PermissionRule } from "#schema/chats/chat-permissions.ts";
import { type CallPlace, commandIn, defaultAction, isEdit } from "./permission-mode.ts";
import { plainCommands, type Words } from "./processes/plain-commands.ts";
import { writingArgument, writingArguments } from "./processes/writing-arguments.ts";
import { changesNothing } from "./registry.ts";

const WEIGHT: Readonly<Record<PermissionAction, number>> = { allow: 0, ask: 1, deny: 2 };
const strictest = (actions: readonly PermissionAction[]): PermissionAction =>
  actions.reduce((one, other) => (WEIGHT[other] > WEIGHT[one] ? other : one), "allow");

/** Programs that run other programs, which must not bypass rules about those. */
const RUNNERS = new Set(
  (
    "sh bash dash zsh ksh fish env sudo doas su nice nohup timeout time xargs parallel find command builtin exec eval source . trap alias " +
    "setsid stdbuf watch strace ssh busybox script flock chroot unshare nsenter ionice taskset awk perl python python3 node ruby"
  ).split(" "),
);

const ANYWHERE: CallPlace = { use: "yes", folder: undefined };

/** Without rules everything is allowed. */
export const permissionFor = (
  permissions: ChatPermissions | null,
  call: { readonly tool_name: string; readonly args: unknown },
  place: CallPlace = ANYWHERE,
): PermissionAction => {
  if (permissions === null) return "allow";
  const { tool_name, args } = call;
  const rules = permissions.rules.filter(({ tool }) => namesTool(tool, tool_name));
  const fallback = defaultAction(permissions.default, call, place, changesNothing(tool_name));
  const whole = rules.find(({ command }) => command === undefined)?.action ?? fallback;
  const about = rules.filter(({ command }) => command !== undefined);
  if (about.length === 0) return whole;
  // Nothing less strict if it is uncertain what runs.
  const doubt = about.some(({ action }) => action !== "allow") ? strictest([whole, "ask"]) : whole;
  const commands = plainCommands(commandIn(args));
  if (commands === undefined) return doubt;
  const otherwise = (words: Words) => (isRunner(words) || writes(words) !== undefined ? doubt : fallback);
  return strictest(commands.map((words) => decideByRules(rules, words) ?? otherwise(words)));
};

/** True for an edit that runs without approval only because the chat's mode accepts edits. */
export const isAcceptedByMode = (
  permissions: ChatPermissions | null,
  call: { readonly tool_name: string; readonly args: unknown },
): boolean =>
  permissions?.default === "accept_edits" &&
  isEdit(call.tool_name) &&
  permissionFor({ default: "ask", rules: permissions.rules }, call) !== "allow";

/** Returns the action of the first matching rule; undefined if none matches, or if the match is unreliable. */
const decideByRules = (rules: readonly PermissionRule[], words: Words): PermissionAction | undefined => {
  const found = rules.find((rule) => rule.command === undefined || begins(words, rule.command, rule));
  if (found?.action !== "allow") return found?.action;
  const isVague = found.command === undefined ? isRunner(words) : isBeyond(words, found.command);
  return isVague ? undefined : "allow";
};

/** Denying and asking rules match a program under any path; allowing rules only as written. */
const begins = (
  words: Words,
  command: string,
  { action, exact }: Pick<PermissionRule, "action" | "exact">,
): boolean => {
  const wanted = plainCommands(command)?.[0] ?? [];
  if (exact && wanted.length !== words.length) return false;
  const [program = "", ...rest] = words;
  const names = action === "allow" ? [program] : [program, baseName(program)];
  return wanted.length > 0 && wanted.every((word, at) => (at === 0 ? names.includes(word) : rest[at - 1] === word));
};

/** True if an argument makes the program write files or run others, and the allowing rule does not contain that argument. */
const isBeyond = ([program = "", ...args]: Words, command: string): boolean => {
  const named = plainCommands(command)?.[0] ?? [];
  return writingArguments(baseName(program), args).some((argument) => !named.includes(argument));
};

const writes = ([program = "", ...args]: Words): string | undefined => writingArgument(baseName(program), args);

const isRunner = ([program = ""]: Words): boolean => RUNNERS.has(baseName(program));
const baseName = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

const namesTool = (pattern: string, name: string): boolean =>
  pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : pattern === name;

/** True for text that a rule can match: one plain command. */
export const isCommandPrefix = (text: string): boolean => plainCommands(text)?.length === 1 && !/[;|&\n]/.test(text);

/**
 * Returns the rules that store an answer: one for the tool, or one for each command in the text. A command's rule matches commands with the
 * same beginning up to the first argument, or exactly this command if further arguments would be other targets or another program. Returns
 * none if a command is not plain or takes a program from its input, and for a refusal of several commands, since each of them alone may be
 * fine.
 */
export const makeRules = (
  { tool_name, args }: { readonly tool_name: string; readonly args: unknown },
  action: PermissionAction,
  command?: string,
): readonly PermissionRule[] => {
  if (tool_name !== "execute") return [{ tool: tool_name, action }];
  if (command !== undefined) return [{ tool: tool_name, command, action }];
  const commands = plainCommands(commandIn(args)) ?? [];
  if (commands.flat().some((word) => word.includes("'")) || (action !== "allow" && commands.length > 1)) return [];
  if (action === "allow" && commands.some(takesProgram)) return [];
  const kept = new Map(
    commands.map((words) => {
      const exact = action === "allow" && isWhole(words);
      return [keptWords(words, exact).map(quoted).join(" "), exact];
    }),
  );
  return [...kept].map(([one, exact]) => ({ tool: tool_name, command: one, action, ...(exact ? { exact } : {}) }));
};

/** Programs whose further arguments are other targets, or another program. */
const WHOLE = new Set(
  (
    "rm rmdir unlink shred mv cp ln install dd tee truncate chmod chown chgrp kill pkill killall make docker podman nerdctl kubectl " +
    "npx bunx pnpx uvx pipx"
  ).split(" "),
);
const INTERPRETERS = new Set("sh bash dash zsh ksh fish perl python python3 node ruby".split(" "));
const PACKAGE_RUNNERS = new Set("npm pnpm yarn bun".split(" "));
/** Programs that read commands or arguments from their input. */
const FED = new Set("xargs parallel ssh su".split(" "));

const isWhole = (words: Words): boolean => {
  const [program = "", first = "-"] = words;
  if (writes(words) !== undefined || WHOLE.has(baseName(program))) return true;
  // An interpreter's script is a program itself, whatever its arguments.
  return isRunner(words) && !(INTERPRETERS.has(baseName(program)) && !first.startsWith("-"));
};

const keptWords = (words: Words, exact: boolean): Words => {
  const [program = "", first] = words;
  if (exact || first?.startsWith("-")) return words;
  return words.slice(0, PACKAGE_RUNNERS.has(baseName(program)) && first === "run" ? 3 : 2);
};

/** True if the program to run is in the command's input instead of its arguments: a rule about the arguments would allow anything. */
const takesProgram = (words: Words): boolean => {
  if (!isRunner(words)) return false;
  const names = words.map(baseName);
  if (names.some((name) => FED.has(name))) return true;
  const last = names.findLastIndex((name) => INTERPRETERS.has(name));
  const rest = words.slice(Math.max(last, 0) + 1);
  if (rest.some((word) => word === "-" || /^-[a-z]*s$/.test(word))) return true;
  return !rest.some((word) => /^[^-\d][^=]*$/.test(word));
};

const quoted = (word: string): string => (/^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word}'`);
