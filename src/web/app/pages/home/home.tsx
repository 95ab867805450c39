// The home page: what needs attention, then what was used last.
import type { Chat } from "#schema/chats/chat.ts";
import type { WorkspaceSummary } from "#schema/workspaces/workspace-watch.ts";
import { chats, chatsLoaded } from "../../data/chats.ts";
import { needs } from "../../data/needs.ts";
import { isSiteOwner, me } from "../../data/session.ts";
import { explainState, formatStatus, getChatState, getWorkspaceState } from "../../data/states.ts";
import { workspaces, workspacesByUse, workspacesLoaded } from "../../data/workspaces.ts";
import { ButtonLink, IconButton } from "../../parts/button.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { State } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { Frame } from "../../shell/frame.tsx";
import { hasPage } from "../../shell/page-list.ts";
import { openPalette } from "../../shell/palette.tsx";
import { FirstModel } from "../admin/first-model-later.tsx";
import { FirstVisit } from "./first.tsx";
import { FirstSteps } from "./first-steps.tsx";
import { NeedItem, toKey } from "./need.tsx";

const MAX_RECENT = 6;

export default function HomePage() {
  const ownWorkspaces = workspacesByUse.value.filter(({ owner_id }) => owner_id === me.value?.id);
  return (
    <Frame
      title="Home"
      actions={
        <>
          <IconButton icon="search" class="phone" label="Search" onPress={openPalette} />
          {hasPage("/chats") && (
            <ButtonLink class="desk" icon="chat" href="/chats">
              New chat
            </ButtonLink>
          )}
          <ButtonLink look="primary" class="desk" icon="plus" href="/new" keys="N">
            New workspace
          </ButtonLink>
        </>
      }
    >
      <div class="page">
        {needs.value.length > 0 && <NeedsSection />}
        {ownWorkspaces.length > 0 && <FirstSteps />}
        {workspacesLoaded.value && ownWorkspaces.length === 0 ? <FirstVisit /> : <Recent workspaces={ownWorkspaces} />}
        {isSiteOwner.value && <FirstModel />}
      </div>
    </Frame>
  );
}

const NeedsSection = () => (
  <section class="stack" aria-labelledby="needs">
    <div class="head">
      <h2 id="needs">Needs you</h2>
      <span class="count attn">{needs.value.length}</span>
    </div>
    <ul class="panel list">
      {needs.value.map((need) => (
        <NeedItem key={toKey(need)} need={need} />
      ))}
    </ul>
  </section>
);

const Recent = ({ workspaces }: { workspaces: readonly WorkspaceSummary[] }) => {
  const recentChats = [...chats.value.values()].slice(0, MAX_RECENT);
  return (
    <div class={recentChats.length > 0 ? "split even" : "stack"}>
      <section class="stack" aria-labelledby="recent-workspaces">
        <div class="head">
          <h2 id="recent-workspaces">Recent workspaces</h2>
          <span class="push">
            <a href="/workspaces">All {workspaces.length}</a>
          </span>
        </div>
        {workspacesLoaded.value ? (
          <ul class="panel list">
            {workspaces.slice(0, MAX_RECENT).map((row) => (
              <WorkspaceItem key={row.id} row={row} />
            ))}
          </ul>
        ) : (
          <Skeleton lines={5} />
        )}
      </section>
      {chatsLoaded.value && recentChats.length > 0 && (
        <section class="stack" aria-labelledby="recent-chats">
          <div class="head">
            <h2 id="recent-chats">Recent chats</h2>
            {hasPage("/chats") && (
              <span class="push">
                <a href="/chats">All</a>
              </span>
            )}
          </div>
          <ul class="panel list">
            {recentChats.map((chat) => (
              <ChatItem key={chat.id} chat={chat} />
            ))}
          </ul>
        </section>
      )}
    </div>
  );
};

const WorkspaceItem = ({ row }: { row: WorkspaceSummary }) => {
  const kind = getWorkspaceState(row);
  const details = [
    row.template_display_name || row.template_name,
    formatStatus(row, kind).toLowerCase(),
    explainState(row),
  ];
  return (
    <li>
      <a class="item" href={`/workspaces/${row.id}`}>
        <State kind={kind}>
          <span class="med clip">{row.name}</span>
          {row.favorite && <Icon name="pin" small />}
        </State>
        <Time class="dim small" at={row.last_used_at} />
        <span class="sub clip">{details.filter(Boolean).join(" · ")}</span>
      </a>
    </li>
  );
};

const ChatItem = ({ chat }: { chat: Chat }) => {
  const { kind, words } = getChatState(chat);
  const workspace = chat.workspace_id ? workspaces.value.get(chat.workspace_id)?.name : undefined;
  return (
    <li>
      <a class="item" href={`/chats/${chat.id}`}>
        <State kind={kind}>
          <span class="med clip">{chat.title}</span>
        </State>
        <Time class="dim small" at={chat.updated_at} />
        <span class="sub clip">{[workspace, words].filter(Boolean).join(" · ")}</span>
      </a>
    </li>
  );
};
