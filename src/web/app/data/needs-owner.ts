// Whether a chat waits for a person. Pure.
import type { Chat } from "#schema/chats/chat.ts";

/** A chat goes on only when its owner has said something: it asks for a permission, an answer, or approval of a plan. */
export const needsOwner = ({ status, awaits }: Pick<Chat, "status" | "awaits">): boolean =>
  status === "requires_action" || awaits !== undefined;
