// The header of a chat: its title, its workspace, context usage, and its menu.
import { useSignal } from "@preact/signals";
import { useLocation } from "preact-iso/router";
import type { Chat } from "#schema/chats/chat.ts";
import { call } from "../../data/api.ts";
import { chats } from "../../data/chats.ts";
import { workspaces } from "../../data/workspaces.ts";
import { CommandButton } from "../../parts/as-command.tsx";
import { Button, IconButton } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field } from "../../parts/field.tsx";
import { writeTextTo } from "../../parts/handlers.ts";
import { Icon } from "../../parts/icon.tsx";
import { Menu, type MenuItem } from "../../parts/menu.tsx";
import { hasPage } from "../../shell/page-list.ts";
import { ForkDialog, openFork } from "../workspaces/fork.tsx";
import { archiveChat, confirmFork, deleteChat, pinChat, renameChat, unarchiveChat } from "./actions.ts";
import type { LiveChat } from "./live-chat.ts";
import { Meter } from "./meter.tsx";
import { openTry, TryDialog } from "./trial/try.tsx";

type HeadProps = {
  readonly chat: LiveChat;
  readonly chatData: Chat | undefined;
  readonly isOwner: boolean;
  readonly hasAside: boolean;
  readonly onAside: () => void;
  readonly onList: () => void;
};

export const Head = ({ chat, chatData, isOwner, hasAside, onAside, onList }: HeadProps) => {
  const { route } = useLocation();
  const isRenaming = useSignal(false);
  const title = chatData?.title ?? "Chat";
  const workspace = chatData?.workspace_id ? workspaces.value.get(chatData.workspace_id) : undefined;
  const isRoot = chatData?.parent_chat_id === undefined;
  const confirmForkHere = (): void => confirmFork(chat.id, route);
  const openRename = (): void => {
    isRenaming.value = true;
  };
  const listItems = (): MenuItem[] => {
    if (!chatData) return [];
    const pinOrder = chats.value.get(chatData.id)?.pin_order ?? chatData.pin_order;
    const refreshAfter = (action: Promise<unknown>) => action.then(() => chat.refresh());
    const items: MenuItem[] = [
      { icon: "pen", label: "Rename", act: openRename },
      { icon: "branch", label: "Fork", act: confirmForkHere },
      ...(workspace && !chatData.archived
        ? [{ icon: "layers" as const, label: "Try several ways", act: () => openTry(chatData) }]
        : []),
      ...(workspace ? [{ icon: "box" as const, label: "Fork workspace", act: () => openFork(workspace) }] : []),
      {
        label: pinOrder > 0 ? "Unpin" : "Pin",
        icon: "pin",
        act: () => pinChat({ id: chatData.id, pin_order: pinOrder }),
      },
      { label: "Summarize history", icon: "spark", act: () => compactChat(chat.id) },
      { label: "Clear context", icon: "restart", act: () => clearContext(chat.id) },
      "line",
      chatData.archived
        ? { label: "Unarchive", icon: "save", act: () => refreshAfter(unarchiveChat(chatData)) }
        : { label: "Archive", icon: "save", act: () => refreshAfter(archiveChat(chatData)) },
      { label: "Delete", icon: "trash", isDanger: true, act: () => deleteChat(chatData, () => route("/chats")) },
    ];
    return isOwner && isRoot ? items : isOwner ? items.slice(0, 1) : [];
  };
  return (
    <header class="bar">
      <IconButton icon="chev" class="back narrow" label="Back to chats" onPress={onList} />
      {chatData?.parent_chat_id && (
        <a class="small" href={`/chats/${chatData.parent_chat_id}`}>
          {chats.value.get(chatData.root_chat_id ?? chatData.parent_chat_id)?.title ?? "Main chat"} /
        </a>
      )}
      <h2 class="clip">{title}</h2>
      {workspace &&
        (hasPage("/workspaces/:workspace") ? (
          <a class="badge desk" href={`/workspaces/${workspace.id}`}>
            <Icon name="box" />
            {workspace.name}
          </a>
        ) : (
          <span class="badge desk">
            <Icon name="box" />
            {workspace.name}
          </span>
        ))}
      {chatData?.archived && <span class="badge">Archived</span>}
      <span class="push line">
        <Meter chat={chat} isOwner={isOwner} />
        <CommandButton />
        {isOwner && isRoot && <IconButton icon="branch" class="desk" label="Fork chat" onPress={confirmForkHere} />}
        <IconButton icon="cols" label="Changes" pressed={hasAside} onPress={onAside} />
        {isOwner && <Menu label={`More for ${title}`} items={listItems} />}
      </span>
      <ForkDialog />
      <TryDialog />
      {isRenaming.value && chatData && (
        <RenameDialog
          chat={chatData}
          close={() => {
            isRenaming.value = false;
            void chat.refresh();
          }}
        />
      )}
    </header>
  );
};

const compactChat = async (chat: string): Promise<void> => {
  await call("POST /chats/:chat/compact", { path: { chat }, body: {} });
};
const clearContext = async (chat: string): Promise<void> => {
  await call("POST /chats/:chat/clear", { path: { chat } });
};

const RenameDialog = ({ chat, close }: { chat: Chat; close: () => void }) => {
  const title = useSignal(chat.title);
  const save = async (): Promise<void> => {
    await renameChat(chat.id, title.value);
    close();
  };
  return (
    <Dialog
      title="Rename chat"
      onClose={close}
      footer={
        <>
          <Button onPress={close}>Cancel</Button>
          <Button look="primary" disabled={title.value.trim() === ""} onPress={save}>
            Rename
          </Button>
        </>
      }
    >
      <Field label="Title" value={title.value} maxLength={200} onInput={writeTextTo(title)} />
    </Dialog>
  );
};
