// The list of chats: first the chats that need the user, then running ones, then finished ones; or grouped by workspace. Has full-text
// search.
import { type ReadonlySignal, signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Chat } from "#schema/chats/chat.ts";
import { call } from "../../data/api.ts";
import { chats, chatsLoaded } from "../../data/chats.ts";
import { getChatState } from "../../data/states.ts";
import { workspaces } from "../../data/workspaces.ts";
import { ButtonLink, IconButton } from "../../parts/button.tsx";
import { writeTextTo } from "../../parts/handlers.ts";
import { Menu, type MenuItem } from "../../parts/menu.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { State } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { showError } from "../../shell/toasts.tsx";
import { type Group, type Grouping, groupChats } from "./groups.ts";

const GROUPING_KEY = "slipway.chats-by";
const grouping = signal<Grouping>((localStorage.getItem(GROUPING_KEY) as Grouping | null) ?? "state");
const setGrouping = (next: Grouping): void => {
  grouping.value = next;
  localStorage.setItem(GROUPING_KEY, next);
};

const getWorkspaceName = (id: string): string => workspaces.value.get(id)?.name ?? "Workspace";

/** Returns the chats found by the server for a search or the archive; undefined while the live list is shown. */
const useSearchResults = (search: string, showsArchived: boolean): ReadonlySignal<readonly Chat[] | undefined> => {
  const results = useSignal<readonly Chat[] | undefined>(undefined);
  useEffect(() => {
    results.value = undefined;
    if (search === "" && !showsArchived) return;
    let isOutdated = false;
    const searchText = search.replaceAll('"', " ").trim();
    const q = [showsArchived && "archived:true", searchText && `search:"${searchText}"`].filter(Boolean).join(" ");
    const timer = setTimeout(
      () => {
        call("GET /chats", { query: { q, limit: 50 } }).then((list) => {
          if (!isOutdated) results.value = list;
        }, showError);
      },
      search === "" ? 0 : 200,
    );
    return () => {
      isOutdated = true;
      clearTimeout(timer);
    };
  }, [search, showsArchived]);
  return results;
};

export const ChatList = ({ current, onClose }: { current?: string; onClose?: () => void }) => {
  const search = useSignal("");
  const isSearching = useSignal(false);
  const results = useSearchResults(search.value.trim(), grouping.value === "archived").value;
  const showsResults = search.value.trim() !== "" || grouping.value === "archived";
  const shownChats = showsResults ? results : [...chats.value.values()];
  const listGroupings = (): MenuItem[] =>
    (["state", "workspace", "archived"] as const).map((one) => ({
      label: { state: "By state", workspace: "By workspace", archived: "Archived" }[one],
      ...(grouping.value === one ? { icon: "check" as const } : {}),
      act: () => setGrouping(one),
    }));
  return (
    <aside class="side" aria-label="Chats">
      <div class="line pad">
        <ButtonLink icon="plus" href="/chats" class="grow" keys="C">
          New chat
        </ButtonLink>
        <IconButton
          icon="search"
          label="Search chats"
          pressed={isSearching.value}
          onPress={() => {
            isSearching.value = !isSearching.value;
            search.value = "";
          }}
        />
        <Menu label="Group chats" icon="sliders" items={listGroupings} />
        {onClose && <IconButton icon="x" label="Close list" class="narrow" onPress={onClose} />}
      </div>
      {isSearching.value && (
        <div class="pad-x">
          <input
            class="input"
            type="search"
            aria-label="Search in all chats"
            placeholder="Search chats"
            ref={(element) => {
              if (element && element.dataset.seen !== "1") {
                element.dataset.seen = "1";
                element.focus();
              }
            }}
            value={search.value}
            onInput={writeTextTo(search)}
          />
        </div>
      )}
      <nav class="chats" aria-label="Chat list" tabIndex={0}>
        {shownChats === undefined || (!showsResults && !chatsLoaded.value) ? (
          <div class="pad">
            <Skeleton />
          </div>
        ) : shownChats.length === 0 ? (
          <p class="pad mut small">{showsResults ? "No matching chats." : "No chats yet."}</p>
        ) : (
          groupChats(shownChats, search.value.trim() === "" ? grouping.value : "state", getWorkspaceName).map(
            (group) => <ChatGroup key={group.name} group={group} current={current} />,
          )
        )}
      </nav>
    </aside>
  );
};

const ChatGroup = ({ group: { name, isPressing, chats }, current }: { group: Group; current: string | undefined }) => (
  <>
    <h2>
      {name}
      {isPressing && <span class="count attn">{chats.length}</span>}
    </h2>
    <ul>
      {chats.map((chat) => (
        <ChatRow key={chat.id} chat={chat} current={current} />
      ))}
    </ul>
  </>
);

const ChatRow = ({ chat, current }: { chat: Chat; current: string | undefined }) => {
  // The open chat is being read, so it is not shown as unread.
  const { kind, words } = getChatState({ ...chat, has_unread: chat.has_unread && chat.id !== current });
  const workspaceName = chat.workspace_id ? getWorkspaceName(chat.workspace_id) : "";
  const summary = chat.status === "waiting" ? chat.last_turn_summary || words : words;
  const isOpen = chat.id === current || chat.children.some(({ id }) => id === current);
  return (
    <li>
      <a class="item" href={`/chats/${chat.id}`} aria-current={chat.id === current ? "page" : undefined}>
        <State kind={kind}>
          <span class="clip">{chat.title}</span>
        </State>
        <Time at={chat.updated_at} class="dim small" />
        <span class="sub clip">{[workspaceName, summary].filter(Boolean).join(" · ")}</span>
      </a>
      {isOpen && chat.children.length > 0 && (
        <ul class="tree" aria-label="Sub-agents">
          {chat.children.map((child) => (
            <li key={child.id}>
              <a class="item" href={`/chats/${child.id}`} aria-current={child.id === current ? "page" : undefined}>
                <State kind={getChatState(child).kind}>
                  <span class="clip">{child.title}</span>
                </State>
                <Time at={child.updated_at} class="dim small" />
              </a>
            </li>
          ))}
        </ul>
      )}
    </li>
  );
};
