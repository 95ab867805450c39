// Calls of a chat that wait for its owner's approval, with the effect each would have on the workspace as it is now (rule PE-16).
import { readChat } from "#actors/chat/storage/read.ts";
import { toPromptScope } from "#actors/chat/turn/offer.ts";
import { conflict, forbidden, notFound } from "#base/errors.ts";
import type { ChatApprovals } from "#schema/chats/chat-approval.ts";
import type { PermissionAnswers } from "#schema/chats/chat-permissions.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { type ActionScope, hasScope } from "#schema/users/scopes.ts";
import { makeRules } from "#src/tools/permission.ts";
import type { DomainContext } from "../context.ts";

/** Returns the calls in order; none unless the chat is waiting for approval. Rejects with 404. */
export const readApprovals = async ({ store, generations }: DomainContext, id: string): Promise<ChatApprovals> => {
  const chat = await readChat(store, id);
  if (!chat) throw notFound();
  const requested =
    chat.status === "requires_action" ? chat.pending_calls.filter((one) => one.permission === "asked") : [];
  const previews = await generations.previewCalls({ ...toPromptScope(chat), chat_id: id }, requested);
  return {
    calls: requested.map((call, index) => ({
      tool_call_id: call.tool_call_id,
      tool_name: call.tool_name,
      args: JSON.stringify(call.args ?? {}),
      ...previews[index],
      always: [...makeRules(call, "allow")],
    })),
  };
};

/**
 * Rejects with 403 when the scopes of the caller's key do not cover an allowed call: one that creates a workspace, or starts one with
 * parameter values, which the workspace keeps. Rejects with 409 when an allowed call is not waiting for approval.
 */
export const requireScopeToAllow = async (
  { store }: Pick<DomainContext, "store">,
  id: string,
  caller: UserCaller,
  answers: PermissionAnswers["answers"],
): Promise<void> => {
  const allowed = answers.filter(({ decision }) => decision === "allow").map(({ tool_call_id }) => tool_call_id);
  if (allowed.length === 0 || hasScope(caller.scopes, "all")) return;
  const waiting = new Map((await readChat(store, id))?.pending_calls.map((call) => [call.tool_call_id, call] as const));
  for (const tool_call_id of allowed) {
    const call = waiting.get(tool_call_id);
    if (!call) throw conflict("No such call is waiting for approval.");
    const missing = listNeededScopes(call).find((scope) => !hasScope(caller.scopes, scope));
    if (missing)
      throw forbidden(`Allowing ${call.tool_name} with these arguments requires a key with the scope ${missing}.`);
  }
};

const listNeededScopes = ({ tool_name, args }: { tool_name: string; args?: unknown }): readonly ActionScope[] => {
  const { parameters } = (args ?? {}) as { parameters?: object | null };
  if (tool_name === "create_workspace") return ["workspace:create", "template:use"];
  return tool_name === "start_workspace" && Object.keys(parameters ?? {}).length > 0 ? ["workspace:ssh"] : [];
};
