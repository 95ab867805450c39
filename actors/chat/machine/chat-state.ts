// A chat as its actor holds it.
import type { ChatRow } from "#db/chats/chats.ts";
import type { Change } from "./decision.ts";

/** A chat in memory: its row, and its queue in order. */
export type ChatState = Omit<ChatRow, "last_error" | "retry_state"> &
  Pick<Change["state"], "last_error" | "retry_state" | "queue">;
