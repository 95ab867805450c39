// Decides whether the user has answered a question or a plan.
import type { ChatMessagePart } from "#schema/chats/chat-part.ts";
import type { LiveChat } from "./live-chat.ts";

/** True if the user has sent a message since then, or the chat is running. */
export const isAnswered = (chat: LiveChat, { tool_call_id }: ChatMessagePart): boolean => {
  const messages = chat.messages.value;
  const index = messages.findLastIndex(({ content }) => content.some((part) => part.tool_call_id === tool_call_id));
  return chat.isBusy.value || messages.slice(index + 1).some(({ role }) => role === "user");
};
