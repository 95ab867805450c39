// What a chat's owner is notified of a turn: that it needs someone, is done or has failed. One notice for each chat: the newest. Sub-chats tell
// nothing, and neither does a chat that someone follows just now (rule NO-5). Pure; used by the chat actor alone.
import type { Statement } from "#db/engine/sql.ts";
import { notified, unnotified } from "#db/notifications/notifications.ts";
import type { NoticeName } from "#schema/notifications/kinds.ts";
import type { ChatState } from "./machine/chat-state.ts";

const KINDS: Readonly<Partial<Record<ChatState["status"], NoticeName>>> = {
  requires_action: "chat_needs_you",
  waiting: "chat_done",
  error: "chat_failed",
};

/** Whether a chat in this state has something to be sent; in any other an older notice was taken back at most. */
export const hasNotice = ({ status }: Pick<ChatState, "status">): boolean => KINDS[status] !== undefined;

const isActive = (status: string): boolean => status === "running" || status === "interrupting";

/** Milliseconds since 1970. `gone`: it was deleted. */
export const chatNotices = (
  before: ChatState | undefined,
  { state, gone = false }: { readonly state: ChatState; readonly gone?: boolean },
  isFollowed: boolean,
  now: number,
): readonly Statement[] => {
  if (!before || state.parent_chat_id !== null) return [];
  if (!gone && before.status === state.status) return [];
  const dedupe = `chat:${state.id}`;
  const forget = unnotified({ user_id: state.owner_id, dedupe });
  if (gone) return [forget];
  const kind = isActive(before.status) ? KINDS[state.status] : undefined;
  // Stopped by its owner, who knows; or shortened, which is no turn.
  const isNews = kind !== undefined && before.status !== "interrupting" && before.compaction === null;
  if (!isNews) return before.status === "requires_action" || isActive(state.status) ? [forget] : [];
  if (isFollowed) return [forget];
  const values = { chat: state.title || "A chat", error: state.last_error?.message ?? "" };
  const about = { now, user_id: state.owner_id, targets: [state.id], path: `/chats/${state.id}` };
  return [forget, notified({ ...about, kind, values, dedupe })];
};
