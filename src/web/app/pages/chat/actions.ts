// Actions on a chat.
import type { Chat, CreateMessage } from "#schema/chats/chat.ts";
import { call } from "../../data/api.ts";
import { deletedChats, patchChat } from "../../data/chats.ts";
import { confirmAction } from "../../parts/dialog.tsx";
import { showToast } from "../../shell/toasts.tsx";
import type { LiveChat } from "./live-chat.ts";

/** Sends a text message. */
export const sendText = async (
  chat: Pick<LiveChat, "id" | "refresh">,
  text: string,
  settings: Partial<CreateMessage> = {},
): Promise<void> => {
  await call("POST /chats/:chat/messages", {
    path: { chat: chat.id },
    body: { content: [{ type: "text", text }], ...settings },
  });
  // The message may have changed the chat's settings, and a short turn ends before its start is seen.
  void chat.refresh().catch(() => {});
};

export const interruptChat = async ({ id }: Pick<LiveChat, "id">): Promise<void> => {
  await call("POST /chats/:chat/interrupt", { path: { chat: id } });
};

/** Asks for confirmation, copies the chat, and navigates to the copy. `message_id` is the last message to copy. */
export const confirmFork = (id: string, route: (path: string) => unknown, message_id?: number): void =>
  confirmAction({
    title: "Fork this chat?",
    text:
      message_id === undefined
        ? "The copy has all messages so far and works in the same workspace. This chat is unchanged."
        : "The copy has the messages up to this one and works in the same workspace. This chat is unchanged.",
    confirmLabel: "Fork chat",
    cancelLabel: "Cancel",
    act: async () => route(await forkChat(id, message_id)),
  });

/** Returns the address of the new chat. `message_id` is the last message to copy. */
export const forkChat = async (id: string, message_id?: number): Promise<string> => {
  const body = message_id === undefined ? {} : { message_id };
  const created = await call("POST /chats/:chat/fork", { path: { chat: id }, body });
  showToast("Chat forked. This is the copy.");
  return `/chats/${created.id}`;
};

export const pinChat = async ({ id, pin_order }: Pick<Chat, "id" | "pin_order">): Promise<void> => {
  const nextOrder = pin_order > 0 ? 0 : 1_000;
  await call("PATCH /chats/:chat", { path: { chat: id }, body: { pin_order: nextOrder } });
  patchChat(id, { pin_order: nextOrder });
};

export const archiveChat = async ({ id }: Pick<Chat, "id">): Promise<void> => {
  await call("PATCH /chats/:chat", { path: { chat: id }, body: { archived: true } });
  showToast("Archived", { label: "Unarchive", act: () => unarchiveChat({ id }) });
};

export const unarchiveChat = async ({ id }: Pick<Chat, "id">): Promise<void> => {
  await call("PATCH /chats/:chat", { path: { chat: id }, body: { archived: false } });
};

export const renameChat = async (id: string, title: string): Promise<void> => {
  await call("PATCH /chats/:chat", { path: { chat: id }, body: { title } });
  patchChat(id, { title });
};

export const deleteChat = ({ id, title }: Pick<Chat, "id" | "title">, onDeleted: () => void): void =>
  confirmAction({
    title: `Delete ${title}?`,
    text: "Its messages, files and sub-agents are permanently deleted. The workspace is kept.",
    confirmLabel: "Delete chat",
    cancelLabel: "Keep it",
    isDanger: true,
    getDeletedMessage: () => (deletedChats.value.has(id) ? `${title} was already deleted` : undefined),
    act: async () => {
      await call("DELETE /chats/:chat", { path: { chat: id } });
      onDeleted();
    },
  });

export const COMPOSER_ID = "composer";

export const focusComposer = (): void => {
  document.getElementById(COMPOSER_ID)?.focus();
};
