// Notifications for a chat's owner when a turn needs attention, finishes or fails. Only the newest notification of each chat is kept.
// Sub-chats, and chats that someone has open, produce none (rule NO-5). Also notifies the people a chat is shared with (rule NO-14). Pure.
import type { ChatShareChange } from "#db/chats/shares.ts";
import type { Statement } from "#db/engine/sql.ts";
import { insertNotification, retractNotice } from "#db/notifications/notifications.ts";
import type { NoticeName } from "#schema/notifications/kinds.ts";
import type { ChatState } from "./machine/chat-state.ts";
import { isActive } from "./names.ts";

const KINDS: Readonly<Partial<Record<ChatState["status"], NoticeName>>> = {
  requires_action: "chat_needs_you",
  waiting: "chat_done",
  error: "chat_failed",
};

/** Returns whether a chat in this state may have a notification. Other states only retract an older one. */
export const hasNotice = ({ status }: Pick<ChatState, "status">): boolean => KINDS[status] !== undefined;

/** Returns the writes for the owner's notification. `isFollowed`: someone has the chat open. `gone`: the chat was deleted. */
export const buildChatNotices = (
  before: ChatState | undefined,
  { state, gone = false }: { readonly state: ChatState; readonly gone?: boolean },
  isFollowed: boolean,
  now: number,
): readonly Statement[] => {
  if (!before || state.parent_chat_id !== null) return [];
  if (!gone && before.status === state.status) return [];
  const dedupe = `chat:${state.id}`;
  const retract = retractNotice({ user_id: state.owner_id, dedupe });
  if (gone) return [retract];
  const kind = isActive(before) ? KINDS[state.status] : undefined;
  // The owner has requested an interrupt or a compaction, and expects its end.
  const isNotable = kind !== undefined && before.status !== "interrupting" && before.compaction === null;
  if (!isNotable) return before.status === "requires_action" || isActive(state) ? [retract] : [];
  if (isFollowed) return [retract];
  const values = { chat: state.title || "A chat", error: state.last_error?.message ?? "" };
  const base = { now, user_id: state.owner_id, targets: [state.id], path: `/chats/${state.id}` };
  return [retract, insertNotification({ ...base, kind, values, dedupe })];
};

/** Returns the writes that notify users who gain access to a chat, and retract the notifications of users who lose it (rule NO-14). */
export const buildShareNotices = (
  { id, title }: Pick<ChatState, "id" | "title">,
  changes: readonly ChatShareChange[],
  by: string,
  now: number,
): readonly Statement[] =>
  changes
    .filter(({ kind }) => kind === "user")
    .map(({ subject: user_id, role }) => {
      const dedupe = `chat_shared:${id}`;
      if (role === null) return retractNotice({ user_id, dedupe });
      const base = { now, user_id, targets: [id], path: `/chats/${id}`, dedupe };
      return insertNotification({ ...base, kind: "chat_shared", values: { by, chat: title || "the chat" } });
    });
