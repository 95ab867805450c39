// The page of a chat: the list of chats, the conversation, and the changes to its workspace.

import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { useLocation, useRoute } from "preact-iso/router";
import { call, Problem } from "../../data/api.ts";
import { useTitle } from "../../data/branding.ts";
import { chats } from "../../data/chats.ts";
import { me } from "../../data/session.ts";
import { Button, ButtonLink } from "../../parts/button.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { onKeys } from "../../shell/keys.ts";
import { showError } from "../../shell/toasts.tsx";
import { archiveChat, focusComposer, forkChat, interruptChat, renameChat } from "./actions.ts";
import { BudgetQuestion } from "./budget-question.tsx";
import { listChangedFiles } from "./changes.tsx";
import { AgentName, Choices, useChoice } from "./choices.tsx";
import { Composer } from "./composer.tsx";
import { getDraft, isEmptyDraft, NEW_CHAT, NO_DRAFT, setDraft } from "./draft.ts";
import { Flow } from "./flow.tsx";
import { Head } from "./head.tsx";
import { getLiveChat, type LiveChat } from "./live-chat.ts";
import { getNextMode, Modes, pickMode } from "./modes.tsx";
import { Permission } from "./permission.tsx";
import { Queue } from "./queue.tsx";
import { ChatList } from "./side.tsx";
import { SidePanel } from "./side-panel.tsx";
import { ChatProblems, StatusLine } from "./status.tsx";
import type { Command } from "./suggest.ts";
import { NewestTrial } from "./trial/trial.tsx";
import { openTry } from "./trial/try.tsx";
import "./styles.ts";
import type { AgentOption } from "#schema/chats/agent-option.ts";
import { Menu, type MenuItem } from "../../parts/menu.tsx";

export default function ChatPage() {
  const id = useRoute().params.chat ?? "";
  return <ChatView key={id} id={id} />;
}

const isWide = (): boolean => matchMedia("(width >= 80rem)").matches;

const ChatView = ({ id }: { id: string }) => {
  const { route } = useLocation();
  const chat = getLiveChat(id);
  const shownPanel = useSignal<"list" | "aside" | undefined>(undefined);
  const hasAside = useSignal(isWide());
  useLayoutEffect(() => chat.follow(), [id]);
  useEffect(() => {
    const stops = [onKeys("c", () => route("/chats")), onKeys("i", focusComposer)];
    return () => {
      for (const stop of stops) stop();
    };
  }, []);
  // The list receives titles and states first; the chat itself has more details.
  const listedChat = chats.value.get(id);
  // A chat that leaves the list was archived or deleted.
  const wasListed = useRef(false);
  useEffect(() => {
    if (wasListed.current && !listedChat) void chat.reloadAfterRefusal();
    wasListed.current = listedChat !== undefined;
  }, [listedChat === undefined]);
  const loadedChat = chat.chat.value;
  const chatData =
    loadedChat && listedChat
      ? { ...loadedChat, title: listedChat.title, pin_order: listedChat.pin_order }
      : (loadedChat ?? listedChat);
  const isOwner = chatData !== undefined && chatData.owner_id === me.value?.id;
  const title = chatData?.title ?? "Chat";
  useTitle(title);
  const toggleAside = (): void => {
    if (isWide()) hasAside.value = !hasAside.value;
    else shownPanel.value = shownPanel.value === "aside" ? undefined : "aside";
  };
  const failure = chat.failure.value;
  const isRefused = failure instanceof Problem && /^(40[0-4]|410)$/.test(String(failure.status));
  return (
    <>
      <h1 class="vh">Chat: {title}</h1>
      <div class="chat" data-shows={shownPanel.value} data-aside={hasAside.value ? undefined : "off"}>
        <ChatList
          current={id}
          onClose={() => {
            shownPanel.value = undefined;
          }}
        />
        <section class="talk" aria-label="Conversation">
          <Head
            chat={chat}
            chatData={chatData}
            isOwner={isOwner}
            hasAside={isWide() ? hasAside.value : shownPanel.value === "aside"}
            onAside={toggleAside}
            onList={() => {
              shownPanel.value = "list";
            }}
          />
          {isRefused ? (
            <Empty icon="chat" title="Chat not found" text="It was deleted, or it is not shared with you.">
              <ButtonLink look="primary" href="/chats">
                All chats
              </ButtonLink>
              {!isEmptyDraft(getDraft(id).value) && (
                <Button
                  onPress={() => {
                    setDraft(NEW_CHAT, getDraft(id).value);
                    setDraft(id, NO_DRAFT);
                    route("/chats");
                  }}
                >
                  New chat from this draft
                </Button>
              )}
            </Empty>
          ) : failure !== undefined && !chat.isLoaded.value ? (
            <Failed title="Can't load this chat" error={failure} reload={() => location.reload()} />
          ) : chat.isLoaded.value ? (
            <Flow chat={chat} isOwner={isOwner}>
              {chat.state.value.actionRequired?.kind === "permission" && isOwner && (
                <Permission
                  key={chat.state.value.actionRequired.tool_calls[0]?.tool_call_id}
                  chat={chat}
                  actionRequired={chat.state.value.actionRequired}
                />
              )}
              {chat.state.value.actionRequired?.budget && (
                <BudgetQuestion chat={chat} budget={chat.state.value.actionRequired.budget} isOwner={isOwner} />
              )}
              <ChatProblems chat={chat} isOwner={isOwner} />
              <NewestTrial chat={chat} />
            </Flow>
          ) : (
            <div class="flow">
              <Skeleton lines={6} />
            </div>
          )}
          {!isRefused && <ChatInput chat={chat} isOwner={isOwner} isArchived={chatData?.archived ?? false} />}
        </section>
        {(hasAside.value || shownPanel.value === "aside") && (
          <SidePanel chat={chat} chatData={chatData} isOwner={isOwner} onClose={toggleAside} />
        )}
      </div>
    </>
  );
};

const ChatInput = ({ chat, isOwner, isArchived }: { chat: LiveChat; isOwner: boolean; isArchived: boolean }) => {
  const { route } = useLocation();
  const choice = useChoice();
  const loadedChat = chat.chat.value;
  // The list receives every change first.
  const mode = chats.value.get(chat.id)?.permission_mode ?? loadedChat?.permission_mode ?? "ask";
  const isBusy = chat.isBusy.value;
  if (loadedChat && (!isOwner || isArchived)) {
    return (
      <div class="dock">
        <p class="pad mut">
          {isArchived
            ? "This chat is archived."
            : `${loadedChat.owner_name} shared this chat with you. It is read-only.`}
        </p>
      </div>
    );
  }
  const path = { chat: chat.id };
  const commands: Command[] = [
    {
      name: "compact",
      description: "Summarize history",
      act: (rest) => call("POST /chats/:chat/compact", { path, body: rest === "" ? {} : { instructions: rest } }),
    },
    { name: "clear", description: "Clear context", act: () => call("POST /chats/:chat/clear", { path }) },
    { name: "try", description: "Try several ways", act: () => loadedChat?.workspace_id && openTry(loadedChat) },
    { name: "fork", description: "Fork chat", act: async () => route(await forkChat(chat.id)) },
    { name: "rename", description: "Rename chat", act: (rest) => renameChat(chat.id, rest) },
    { name: "stop", description: "Interrupt the turn", act: () => interruptChat(chat) },
    { name: "archive", description: "Archive chat", act: () => loadedChat && archiveChat(loadedChat) },
    { name: "new", description: "Start a new chat", act: () => route("/chats") },
  ];
  const canStop = isBusy && chat.status.value !== "interrupting";
  return (
    <div class="dock">
      <Queue chat={chat} />
      <Composer
        draftKey={chat.id}
        organization={loadedChat?.organization_id ?? ""}
        placeholder={`${isBusy ? "Add to the queue" : "Write a message"}. / commands, @ files`}
        sendLabel={isBusy ? "Queue message" : "Send message"}
        commands={commands}
        files={listChangedFiles}
        onSend={async (content, interrupts) => {
          const sentChoice = choice.value;
          await call("POST /chats/:chat/messages", {
            path,
            body: { content, ...sentChoice, ...(interrupts && isBusy ? { busy_behavior: "interrupt" } : {}) },
          });
          void chat.refresh().then(() => {
            if (choice.value === sentChoice) choice.value = {};
          }, showError);
        }}
        {...(canStop ? { onInterrupt: () => interruptChat(chat) } : {})}
        onNextMode={() => pickMode(chat, getNextMode(mode))}
      >
        {loadedChat?.coding_agent ? (
          <>
            <AgentName name={loadedChat.coding_agent} />
            <AgentOptions chat={chat} kind="others" />
          </>
        ) : (
          <Choices
            choice={choice}
            current={{
              ...(loadedChat ? { model_config_id: loadedChat.last_model_config_id } : {}),
              ...(loadedChat?.last_reasoning_effort ? { reasoning_effort: loadedChat.last_reasoning_effort } : {}),
            }}
          />
        )}
      </Composer>
      <Modes mode={mode} permissions={loadedChat?.permissions} onPick={(one) => pickMode(chat, one)}>
        <AgentOptions chat={chat} kind="modes" />
      </Modes>
      <StatusLine chat={chat} />
    </div>
  );
};

// The options of a chat's coding agent: its modes appear with the permission modes, its models and other options next to its name.
const isMode = ({ id, category }: AgentOption): boolean => id === "mode" || category === "mode";

/** Stores the choice. The agent applies it with the next message. */
const setAgentOption = async (chat: LiveChat, id: string, choice: string): Promise<void> => {
  await call("PATCH /chats/:chat", { path: { chat: chat.id }, body: { agent_options: { [id]: choice } } });
  await chat.refresh();
};

type AgentOptionsProps = { readonly chat: LiveChat; readonly kind: "modes" | "others" };

const AgentOptions = ({ chat, kind }: AgentOptionsProps) => {
  const options = (chat.chat.value?.agent_options ?? []).filter((option) => isMode(option) === (kind === "modes"));
  // The chat has its own plan mode, which the agent follows.
  const listOffered = ({ choices }: AgentOption) => choices.filter(({ id }) => kind === "others" || id !== "plan");
  return (
    <>
      {options
        .filter((option) => listOffered(option).length > 1)
        .map((option) => {
          const current = option.choices.find(({ id }) => id === option.current);
          const label = kind === "modes" ? "Agent mode" : option.name;
          const items = (): MenuItem[] =>
            listOffered(option).map((one) => ({
              label: one.name,
              note: one.description.slice(0, 80),
              act: () => setAgentOption(chat, option.id, one.id),
              ...(one.id === option.current ? { icon: "check" as const } : {}),
            }));
          return (
            <Menu key={option.id} label={`${label}: ${current?.name ?? option.current}`} small items={items}>
              <span class="clip">
                {label}: {current?.name ?? option.current}
              </span>
            </Menu>
          );
        })}
    </>
  );
};
