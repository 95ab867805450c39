// Decides by the chat's rules, and by what a planning chat may do, whether a coding agent's call may run. Pure.
import type { PermissionAction } from "#schema/chats/chat-permissions.ts";
import type { ChatTool } from "#src/acp/calls.ts";
import { permissionFor } from "#src/tools/permission.ts";
import { commandIn, isEdit, pathsIn } from "#src/tools/permission-mode.ts";
import { findWriteReason } from "#src/tools/processes/read-only-commands.ts";
import { findLimit, lookUpUse } from "#src/tools/registry.ts";
import type { StartedAttempt } from "../messages.ts";
import { toToolsOf } from "../turn/offer.ts";

export type Verdict = { readonly action: PermissionAction; readonly why: string };

export const DENIED =
  "The rules of this chat do not allow this call. Do not try to get around them; go on without it or ask.";
const PLANNING = "The chat is planning: look around and propose a plan, change nothing.";

/** Calls that never change anything, whichever agent makes them. */
const LOOKS: ReadonlySet<string> = new Set(["read_file", "agent_read", "agent_search", "agent_fetch", "agent_think"]);

/** `folder`: the agent's, where known. `isOffered`: whether the chat offers the tool; a planning chat offers fewer. */
export const decideAgentCall = (
  chat_id: string,
  { about, permissions }: Pick<StartedAttempt, "about" | "permissions">,
  { tool_name, args }: ChatTool,
  folder: string | undefined,
  isOffered = false,
): Verdict => {
  const of = toToolsOf(chat_id, about);
  if (about.plan_mode !== null && !isOffered && mayChange(tool_name, args, of))
    return { action: "deny", why: PLANNING };
  const place = { use: lookUpUse(tool_name, of), folder };
  return { action: permissionFor(permissions, { tool_name, args }, place), why: DENIED };
};

const mayChange = (tool_name: string, args: ChatTool["args"], of: ReturnType<typeof toToolsOf>): boolean => {
  if (tool_name === "execute") return findWriteReason(commandIn(args)) !== undefined;
  if (isEdit(tool_name)) return pathsIn(args).length === 0 || findLimit(tool_name, args, of) !== undefined;
  // A person decides about leaving the agent's own plan, through the chat's mode.
  return !LOOKS.has(tool_name);
};
