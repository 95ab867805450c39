// Notifications for a chat's owner when a turn needs attention, finishes or fails. Only the newest notification of each chat is kept.
// Sub-chats and chats with current followers produce none (rule NO-5). Also notifies the people a chat is shared with (rule NO-14). Pure;
// used only by the chat actor.
import type { ChatShareChange } from "#db/chats/shares.ts";
import type { Statement } from "#db/engine/sql.ts";
import { insertNotification, retractNotice } from "#db/notifications/notifications.ts";
import type { NoticeName } from "#schema/notifications/kinds.ts";
import type { ChatState } from "./machine/chat-state.ts";

const KINDS: Readonly<Partial<Record<ChatState["status"], NoticeName>>> = {
  requires_action: "chat_needs_you",
  waiting: "chat_done",
  error: "chat_failed",
};

/** Returns whether this state has a notification. Other states only retract an older one. */
export const hasNotice = ({ status }: Pick<ChatState, "status">): boolean => KINDS[status] !== undefined;

const isActive = (status: string): boolean => status === "running" || status === "interrupting";

/** Returns the writes for the notification. `now` is in milliseconds since 1970. `gone`: the chat is deleted. */
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
  const kind = isActive(before.status) ? KINDS[state.status] : undefined;
  // The owner knows about an interrupt, and a compaction is not a turn.
  const isNotable = kind !== undefined && before.status !== "interrupting" && before.compaction === null;
  if (!isNotable) return before.status === "requires_action" || isActive(state.status) ? [retract] : [];
  if (isFollowed) return [retract];
  const values = { chat: state.title || "A chat", error: state.last_error?.message ?? "" };
  const base = { now, user_id: state.owner_id, targets: [state.id], path: `/chats/${state.id}` };
  return [retract, insertNotification({ ...base, kind, values, dedupe })];
};

/** Returns the notifications for users who gain access to a chat, and removes those of users who lose it (rule NO-14). */
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
