// Permission modes: what a chat may do without asking if no rule matches. A mode is stored as `permissions.default` and `plan_mode`, so
// rules, plan mode and sub-chats work the same with and without it (rules PE-11 to PE-13). Pure.

import { isSameFolder } from "#base/system/same-folder.ts";
import { quoteForShell } from "#base/text/shell-quote.ts";
import { trimEnd } from "#base/text/trim.ts";
import type { ChatPermissions, PermissionAction, PermissionMode } from "#schema/chats/chat-permissions.ts";
import type { ToolUse } from "./available.ts";
import { AGENT_STEP, findWriteReason } from "./processes/read-only-commands.ts";

const EDIT_TOOLS: ReadonlySet<string> = new Set(["write_file", "edit_files"]);

export const isEdit = (tool_name: string): boolean => EDIT_TOOLS.has(tool_name);

type StoredMode = { readonly permissions: ChatPermissions | null; readonly plan_mode: "plan" | null };
type Default = ChatPermissions["default"];

const DEFAULTS: Readonly<Record<Exclude<PermissionMode, "plan">, Default>> = {
  ask: "ask_changes",
  accept_edits: "accept_edits",
  allow: "allow",
};

/** Returns the mode of a chat. Permissions that are stricter than any mode count as `ask`. */
export const toPermissionMode = ({ permissions, plan_mode }: StoredMode): PermissionMode => {
  if (plan_mode !== null) return "plan";
  const fallback = permissions?.default ?? "allow";
  return fallback === "allow" || fallback === "accept_edits" ? fallback : "ask";
};

const FREEDOM: Readonly<Record<PermissionMode, number>> = { plan: 0, ask: 1, accept_edits: 2, allow: 3 };

/** Returns whether a mode allows a chat more than another one. */
export const isLooserMode = (mode: PermissionMode, than: PermissionMode): boolean => FREEDOM[mode] > FREEDOM[than];

/** Returns the stored form of a mode. Rules are kept, and for the mode `ask` a stricter default is kept too. */
export const applyPermissionMode = (mode: PermissionMode, now: StoredMode): StoredMode => {
  if (mode === "plan") return { permissions: now.permissions, plan_mode: "plan" };
  const base = { permissions: now.permissions, plan_mode: null };
  if (toPermissionMode(base) === mode) return base;
  return { permissions: { default: DEFAULTS[mode], rules: now.permissions?.rules ?? [] }, plan_mode: null };
};

/** Returns the permissions with approval required for changes, unless they are already stricter. */
export const requireAsking = (permissions: ChatPermissions | null): ChatPermissions =>
  permissions !== null && toPermissionMode({ permissions, plan_mode: null }) === "ask"
    ? permissions
    : { default: "ask_changes", rules: permissions?.rules ?? [] };

export type CallContext = {
  /** The table's entry for the tool in this chat (available.ts). */
  readonly use: ToolUse;
  /** The agent's folder, if known. */
  readonly folder: string | undefined;
};

/**
 * Returns the action for a call that no rule matches. Tools that do not declare `changes_nothing` require approval, including tools of
 * clients and MCP servers.
 */
export const findDefaultAction = (
  fallback: Default,
  { tool_name, args }: { readonly tool_name: string; readonly args: unknown },
  { use, folder }: CallContext,
  changes_nothing: boolean,
): PermissionAction => {
  if (fallback === "allow" || fallback === "ask" || fallback === "deny") return fallback;
  if (changes_nothing) return "allow";
  // A chat that only reads may write only its plan, and its programs are restricted separately.
  if (use === "plan_file") return "allow";
  if (use === "read_only")
    return findWriteReason(getCommandInFolder(args, folder), folder) === undefined ? "allow" : "ask";
  const accepts = fallback === "accept_edits" && EDIT_TOOLS.has(tool_name);
  const paths = getPaths(args);
  return accepts && paths.length > 0 && paths.every((path) => isPlainPath(path, folder)) ? "allow" : "ask";
};

/** Returns the shell text of `execute`; empty for anything else. */
export const getCommand = (args: unknown): string => {
  const command = typeof args === "object" && args !== null && "command" in args ? args.command : "";
  return typeof command === "string" ? command : "";
};

/** Stands for a folder of which only the agent's shell knows. */
export const UNKNOWN_FOLDER = "an unknown folder";

/** Returns the folders that a coding agent's shell may have kept from earlier commands, in which it may run this one. */
export const getShellFolders = (args: unknown): readonly string[] => {
  const { shell_folders } = (typeof args === "object" && args !== null ? args : {}) as { shell_folders?: unknown };
  return Array.isArray(shell_folders) ? shell_folders.map(String) : [];
};

/**
 * Returns the shell text of `execute` with its change of folder: the same words run another program, or change other files, in another
 * folder, and in the folder of another agent that the call names. `folder`: the agent's folder, if known.
 */
export const getCommandInFolder = (args: unknown, folder: string | undefined): string => {
  const command = getCommand(args);
  const { workdir, agent } = (typeof args === "object" && args !== null ? args : {}) as {
    workdir?: unknown;
    agent?: unknown;
  };
  if (command === "") return command;
  const isElsewhere = namesAgent(args);
  const staysInFolder = typeof workdir !== "string" || isSameFolder(workdir, isElsewhere ? undefined : folder);
  return [
    ...(isElsewhere ? [`${AGENT_STEP} ${quoteForShell(String(agent))}`] : []),
    ...getShellFolders(args).map((one) => `cd ${quoteForShell(one)}`),
    ...(staysInFolder ? [] : [`cd ${quoteForShell(workdir)}`]),
    command,
  ].join(" && ");
};

/** Whether a call names an agent of the workspace, which has a folder of its own. */
export const namesAgent = (args: unknown): boolean => {
  const { agent } = (typeof args === "object" && args !== null ? args : {}) as { agent?: unknown };
  return typeof agent === "string" && agent !== "";
};

/** Returns the files that an edit names. */
export const getPaths = (args: unknown): readonly unknown[] => {
  const { path, files } = (typeof args === "object" && args !== null ? args : {}) as {
    path?: unknown;
    files?: unknown;
  };
  const named = Array.isArray(files) ? files.map((file: { path?: unknown } | null) => file?.path) : [];
  return path === undefined ? named : [path, ...named];
};

/** True if the path is below the agent's folder and not hidden: git, a shell or an editor may run hidden files. */
export const isPlainPath = (path: unknown, folder: string | undefined): boolean => {
  if (typeof path !== "string") return false;
  const root = folder === undefined ? undefined : `${trimEnd(folder, "/")}/`;
  const inside = root !== undefined && path.startsWith(root) ? path.slice(root.length) : path;
  if (inside.startsWith("/") || inside.startsWith("~")) return false;
  return inside.split("/").every((part, at) => (part === "." ? at === 0 : !part.startsWith(".")));
};
