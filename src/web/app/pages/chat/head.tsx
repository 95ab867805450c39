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
import { textInto } from "../../parts/handlers.ts";
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
  readonly known: Chat | undefined;
  readonly isOwner: boolean;
  readonly hasAside: boolean;
  readonly onAside: () => void;
  readonly onList: () => void;
};

export const Head = ({ chat, known, isOwner, hasAside, onAside, onList }: HeadProps) => {
  const { route } = useLocation();
  const renames = useSignal(false);
  const title = known?.title ?? "Chat";
  const workspace = known?.workspace_id ? workspaces.value.get(known.workspace_id) : undefined;
  const isRoot = known?.parent_chat_id === undefined;
  const confirmForkHere = (): void => confirmFork(chat.id, route);
  const openRename = (): void => {
    renames.value = true;
  };
  const items = (): MenuItem[] => {
    if (!known) return [];
    const pinned = chats.value.get(known.id)?.pin_order ?? known.pin_order;
    const refreshAfter = (done: Promise<unknown>) => done.then(() => chat.refresh());
    const own: MenuItem[] = [
      { icon: "pen", label: "Rename", act: openRename },
      { icon: "branch", label: "Fork", act: confirmForkHere },
      ...(workspace && !known.archived
        ? [{ icon: "layers" as const, label: "Try several ways", act: () => openTry(known) }]
        : []),
      ...(workspace ? [{ icon: "box" as const, label: "Fork workspace", act: () => openFork(workspace) }] : []),
      { label: pinned > 0 ? "Unpin" : "Pin", icon: "pin", act: () => pinChat({ id: known.id, pin_order: pinned }) },
      { label: "Summarize history", icon: "spark", act: () => compact(chat.id) },
      { label: "Clear context", icon: "restart", act: () => clear(chat.id) },
      "line",
      known.archived
        ? { label: "Unarchive", icon: "save", act: () => refreshAfter(unarchiveChat(known)) }
        : { label: "Archive", icon: "save", act: () => refreshAfter(archiveChat(known)) },
      { label: "Delete", icon: "trash", isDanger: true, act: () => deleteChat(known, () => route("/chats")) },
    ];
    return isOwner && isRoot ? own : isOwner ? own.slice(0, 1) : [];
  };
  return (
    <header class="bar">
      <IconButton icon="chev" class="back narrow" label="Back to chats" onPress={onList} />
      {known?.parent_chat_id && (
        <a class="small" href={`/chats/${known.parent_chat_id}`}>
          {chats.value.get(known.root_chat_id ?? known.parent_chat_id)?.title ?? "Main chat"} /
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
      {known?.archived && <span class="badge">Archived</span>}
      <span class="push line">
        <Meter chat={chat} isOwner={isOwner} />
        <CommandButton />
        {isOwner && isRoot && <IconButton icon="branch" class="desk" label="Fork chat" onPress={confirmForkHere} />}
        <IconButton icon="cols" label="Changes" pressed={hasAside} onPress={onAside} />
        {isOwner && <Menu label={`More for ${title}`} items={items} />}
      </span>
      <ForkDialog />
      <TryDialog />
      {renames.value && known && (
        <Rename
          chat={known}
          close={() => {
            renames.value = false;
            void chat.refresh();
          }}
        />
      )}
    </header>
  );
};

const compact = async (chat: string): Promise<void> => {
  await call("POST /chats/:chat/compact", { path: { chat }, body: {} });
};
const clear = async (chat: string): Promise<void> => {
  await call("POST /chats/:chat/clear", { path: { chat } });
};

const Rename = ({ chat, close }: { chat: Chat; close: () => void }) => {
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
      <Field label="Title" value={title.value} maxLength={200} onInput={textInto(title)} />
    </Dialog>
  );
};
