// Decides by the chat's rules, and by what a planning chat may do, whether a coding agent's call may run. Pure.
import { quoteForShell } from "#base/text/shell-quote.ts";
import type { PermissionAction } from "#schema/chats/chat-permissions.ts";
import type { ChatTool } from "#src/acp/calls.ts";
import { decidePermission } from "#src/tools/permission.ts";
import { getCommandInFolder, getPaths, getShellFolders, isEdit } from "#src/tools/permission-mode.ts";
import { findWriteReason } from "#src/tools/processes/read-only-commands.ts";
import { explainLimit, findToolUse } from "#src/tools/registry.ts";
import type { StartedAttempt } from "../messages.ts";
import { toToolScope } from "../turn/offer.ts";

export type Verdict = { readonly action: PermissionAction; readonly why: string };

export const DENIED =
  "The rules of this chat do not allow this call. Do not try to work around them. Continue without the call, or ask.";
const PLANNING = "The chat is in plan mode: explore, propose a plan, and change nothing.";

/** Tools that change nothing. `agent_...` is a coding agent's own tool, named after its kind. */
const READ_ONLY_TOOLS: ReadonlySet<string> = new Set([
  "read_file",
  "agent_read",
  "agent_search",
  "agent_fetch",
  "agent_think",
]);

/** `isOffered`: Slipway offers this tool to the chat. In plan mode, it offers only tools that may be used there. */
export const decideAgentCall = (
  chat_id: string,
  { chat, permissions }: Pick<StartedAttempt, "chat" | "permissions">,
  { tool_name, args }: ChatTool,
  folder: string | undefined,
  isOffered = false,
): Verdict => {
  const scope = toToolScope(chat_id, chat);
  if (chat.plan_mode !== null && !isOffered && canChangeFiles({ tool_name, args }, scope, folder))
    return { action: "deny", why: explainPlanning(args, folder) };
  const context = { use: findToolUse(tool_name, scope), folder };
  return { action: decidePermission(permissions, { tool_name, args }, context), why: DENIED };
};

/** Says how to look further where only the folder may be the problem. */
const explainPlanning = (args: ChatTool["args"], folder: string | undefined): string => {
  const [kept] = getShellFolders(args);
  if (kept === undefined || folder === undefined) return PLANNING;
  return `${PLANNING} The shell may still be in "${kept}". To run git, begin with \`cd ${quoteForShell(folder)} && \`.`;
};

const canChangeFiles = (
  { tool_name, args }: ChatTool,
  scope: ReturnType<typeof toToolScope>,
  folder: string | undefined,
): boolean => {
  if (tool_name === "execute") return findWriteReason(getCommandInFolder(args, folder), folder) !== undefined;
  if (isEdit(tool_name)) return getPaths(args).length === 0 || explainLimit(tool_name, args, scope) !== undefined;
  // Only a person can end plan mode, by changing the chat's mode.
  return !READ_ONLY_TOOLS.has(tool_name);
};
