// Calls of a chat that wait for its owner's approval, with the effect each would have on the workspace as it is now (rule PE-16).
import { readChat } from "#actors/chat/storage/read.ts";
import { toPromptScope } from "#actors/chat/turn/offer.ts";
import { notFound } from "#base/errors.ts";
import type { ChatApprovals } from "#schema/chats/chat-approval.ts";
import { makeRules } from "#src/tools/permission.ts";
import type { DomainContext } from "../context.ts";

/** Returns the calls in order; none unless the chat is waiting for approval. Rejects with 404. */
export const readApprovals = async ({ store, generations }: DomainContext, id: string): Promise<ChatApprovals> => {
  const chat = await readChat(store, id);
  if (!chat) throw notFound();
  const asked = chat.status === "requires_action" ? chat.pending_calls.filter((one) => one.permission === "asked") : [];
  const previews = await generations.previewCalls({ ...toPromptScope(chat), chat_id: id }, asked);
  return {
    calls: asked.map((call, at) => ({
      tool_call_id: call.tool_call_id,
      tool_name: call.tool_name,
      args: JSON.stringify(call.args ?? {}),
      ...previews[at],
      always: [...makeRules(call, "allow")],
    })),
  };
};
