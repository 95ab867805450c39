// Decides whether a chat is waiting for a person. Pure.
import type { Chat } from "#schema/chats/chat.ts";

/** True if a chat waits for its owner: for an approval, an answer, or approval of a plan. */
export const isWaitingForOwner = ({ status, awaits }: Pick<Chat, "status" | "awaits">): boolean =>
  status === "requires_action" || awaits !== undefined;
