// All chats, and the form for a new one: with or without a workspace, and with a model, effort and plan mode.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import type { InputPart } from "#schema/chats/chat-part.ts";
import type { PermissionMode } from "#schema/chats/chat-permissions.ts";
import type { RepositoryAsked } from "#schema/templates/repository.ts";
import { call, callServer } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { organizations } from "../../data/session.ts";
import { workspacesByUse } from "../../data/workspaces.ts";
import { setTo } from "../../parts/handlers.ts";
import { Icon } from "../../parts/icon.tsx";
import { Menu, type MenuItem } from "../../parts/menu.tsx";
import { formatRepository } from "../../parts/repository-fields.tsx";
import { Frame } from "../../shell/frame.tsx";
import { FirstModel } from "../admin/first-model-later.tsx";
import { Choices, hasChosen, useChoice, useDefaultAgent } from "../chat/choices.tsx";
import { Composer } from "../chat/composer.tsx";
import { NEW_CHAT } from "../chat/draft.ts";
import { getNextMode, Modes } from "../chat/modes.tsx";
import { ChatList } from "../chat/side.tsx";
import { ChooseRepository, findOrCreateWorkspace } from "./choose-repository.tsx";
import "../chat/styles.ts";

const MAX_WORKSPACES = 12;

/**
 * Returns the default coding agent for chats in a new workspace. Rejects with a message if it cannot be used: it is never replaced
 * silently.
 */
const loadDefaultAgent = async (workspace_id: string): Promise<string | undefined> => {
  const { default_agent } = await callServer("GET /ai/agents/available", { query: { workspace_id } });
  if (!default_agent) return undefined;
  const { name, problem } = default_agent;
  if (problem !== "")
    throw new Error(`${problem} It is the template's default. Choose another agent, or send again to use the model.`);
  return name;
};

export default function ChatsPage() {
  const { query, route } = useLocation();
  const choice = useChoice();
  const workspace = useSignal(query.workspace ?? "");
  /** Used instead of a workspace, which is found or created when the first message is sent. */
  const repository = useSignal<RepositoryAsked | undefined>(undefined);
  const isChoosingRepository = useSignal(false);
  const waitMessage = useSignal("");
  useEffect(() => {
    workspace.value = query.workspace ?? "";
  }, [query.workspace]);
  const chosenWorkspace = workspacesByUse.value.find(({ id }) => id === workspace.value);
  const organization = chosenWorkspace?.organization_id ?? organizations.value[0]?.id ?? "";
  // The permissions that the server applies by default, unless the user picks others.
  const { state: starting } = useResource(`starting permissions ${workspace.value}`, () =>
    call("GET /chats/config/starting-permissions", {
      query: workspace.value === "" ? {} : { workspace_id: workspace.value },
    }),
  );
  const templateDefault = useDefaultAgent(workspace.value === "" ? undefined : { workspace_id: workspace.value });
  const defaultAgentName = templateDefault?.problem === "" ? templateDefault.name : undefined;
  const hasAgent = (hasChosen(choice.value) ? choice.value.coding_agent : defaultAgentName) !== undefined;
  const pickedMode = useSignal<PermissionMode | undefined>(undefined);
  const mode = pickedMode.value ?? starting.value.data?.permission_mode ?? "ask";
  const pickMode = (one: PermissionMode): void => {
    pickedMode.value = one;
  };
  const prepareWorkspace = async (repositoryToOpen: RepositoryAsked): Promise<void> => {
    try {
      chooseWorkspace(
        await findOrCreateWorkspace(repositoryToOpen, (message) => {
          waitMessage.value = message;
        }),
      );
    } finally {
      waitMessage.value = "";
    }
  };
  const startChat = async (content: InputPart[]): Promise<void> => {
    let agent = defaultAgentName;
    if (repository.value) {
      await prepareWorkspace(repository.value);
      if (!hasChosen(choice.value)) agent = await loadDefaultAgent(workspace.value);
    }
    const engineChoice = agent === undefined || hasChosen(choice.value) ? choice.value : { coding_agent: agent };
    const { id } = await call("POST /chats", {
      body: {
        organization_id: organization,
        content,
        client_type: "ui",
        ...engineChoice,
        ...(pickedMode.value === undefined ? {} : { permission_mode: pickedMode.value }),
        ...(workspace.value === "" ? {} : { workspace_id: workspace.value }),
      },
    });
    route(`/chats/${id}`);
  };
  const chooseWorkspace = (id: string): void => {
    workspace.value = id;
    repository.value = undefined;
  };
  const listWorkspaceItems = (): MenuItem[] => [
    { label: "Without a workspace", act: () => chooseWorkspace("") },
    { label: "Work in a repository…", icon: "branch", act: setTo(isChoosingRepository, true) },
    ...workspacesByUse.value.slice(0, MAX_WORKSPACES).map(({ id, name, owner_name }) => ({
      label: name,
      note: owner_name,
      icon: "box" as const,
      act: () => chooseWorkspace(id),
    })),
  ];
  return (
    <div class="chat" data-aside="off" data-shows="new">
      <ChatList />
      <section class="talk" aria-label="New chat">
        <Frame title="New chat">
          <div class="begin">
            <h2>What would you like to work on?</h2>
            <p class="mut">
              {repository.value
                ? "The chat works in a clone of the repository: it reads and edits files there and runs commands."
                : chosenWorkspace
                  ? `The ${hasAgent ? "agent" : "model"} works in ${chosenWorkspace.name}: it reads and edits files there and runs commands.`
                  : "Without a workspace, the model answers questions. With one, it also reads and edits files and runs commands."}
            </p>
            <FirstModel />
            {templateDefault && templateDefault.problem !== "" && !hasChosen(choice.value) && (
              <p class="banner box" role="status">
                <Icon name="warn" />
                <span>
                  {templateDefault.problem} It is the default of this workspace's template. Choose another agent, or
                  start the chat with the model below.
                </span>
              </p>
            )}
            {waitMessage.value && (
              <p class="banner box" role="status">
                <Icon name="box" />
                <span>{waitMessage.value}</span>
              </p>
            )}
          </div>
        </Frame>
        <div class="dock">
          <Composer
            draftKey={NEW_CHAT}
            organization={organization}
            placeholder="Describe the task"
            sendLabel="Start chat"
            commands={[]}
            files={() => []}
            onSend={startChat}
            onNextMode={() => pickMode(getNextMode(mode))}
          >
            <Menu label="Workspace" small items={listWorkspaceItems} class="model">
              <Icon name={repository.value ? "branch" : "box"} />
              <span class="clip">
                {repository.value ? formatRepository(repository.value) : (chosenWorkspace?.name ?? "No workspace")}
              </span>
            </Menu>
            <Choices
              choice={choice}
              current={{}}
              offersAgents
              defaultAgent={{ name: defaultAgentName, isLater: repository.value !== undefined }}
            />
          </Composer>
          <Modes mode={mode} permissions={starting.value.data?.permissions ?? undefined} onPick={pickMode} />
        </div>
      </section>
      {isChoosingRepository.value && (
        <ChooseRepository
          onClose={setTo(isChoosingRepository, false)}
          onChoose={(requested) => {
            workspace.value = "";
            repository.value = requested;
          }}
        />
      )}
    </div>
  );
}
