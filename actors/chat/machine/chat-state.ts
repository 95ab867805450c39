// A chat as its actor keeps it in memory.
import type { ChatRow } from "#db/chats/chats.ts";
import type { Change } from "./decision.ts";

/** The chat's row, and its queue in order. */
export type ChatState = Omit<ChatRow, "last_error" | "retry_state"> &
  Pick<Change["state"], "last_error" | "retry_state" | "queue">;
