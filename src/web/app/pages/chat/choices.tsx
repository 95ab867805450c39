// Selects the model and effort of the next message, or the coding agent of a new chat.
import { type Signal, useSignal } from "@preact/signals";
import type { DefaultAgent } from "#schema/ai/coding-agents.ts";
import type { AvailableModels } from "#schema/chats/model-config.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Menu, type MenuItem } from "../../parts/menu.tsx";

export type Choice = {
  /** Undefined for the chat's model, or the default. */
  readonly model_config_id?: string;
  readonly reasoning_effort?: string;
  /** Only for a new chat. */
  readonly coding_agent?: string;
};

export type Model = AvailableModels["providers"][number]["models"][number] & { readonly isAvailable: boolean };

/** Returns all available models. */
export const useModels = (): readonly Model[] => {
  const { state } = useResource("chat models", () => call("GET /chats/models"));
  return (state.value.data?.providers ?? []).flatMap(({ models, available }) =>
    models.map((model) => ({ ...model, isAvailable: available })),
  );
};

export const useChoice = (): Signal<Choice> => useSignal<Choice>({});

/** Returns the coding agents that new chats can use. */
export const useAgents = (isNeeded: boolean) => {
  const { state } = useResource(isNeeded ? "coding agents" : undefined, () => call("GET /ai/agents/available"));
  return state.value.data?.agents ?? [];
};

/** Returns the default agent of a workspace's template, or of a template. Undefined until loaded, or if none exists. */
export const useDefaultAgent = (
  location: { readonly workspace_id: string } | { readonly template_id: string } | undefined,
): DefaultAgent | undefined => {
  const key = location && `default agent ${Object.values(location).join()}`;
  const { state } = useResource(key, () => call("GET /ai/agents/available", { query: location ?? {} }));
  return state.value.data?.default_agent;
};

/** True if the user has chosen a model or an agent. */
export const hasChosen = ({ coding_agent, model_config_id }: Choice): boolean =>
  coding_agent !== undefined || model_config_id !== undefined;

type ChoicesProps = {
  readonly choice: Signal<Choice>;
  /** For a new chat: also offers coding agents. */
  readonly offersAgents?: boolean;
  /** The name of the default agent for a new chat. `isLater`: the default depends on a workspace that does not exist yet. */
  readonly defaultAgent?: { readonly name?: string | undefined; readonly isLater: boolean };
  /** The values in effect if the user has chosen none. */
  readonly current: { readonly model_config_id?: string; readonly reasoning_effort?: string };
};

export const Choices = ({ choice, current, offersAgents = false, defaultAgent }: ChoicesProps) => {
  const models = useModels();
  const agents = useAgents(offersAgents);
  const { model_config_id, reasoning_effort } = choice.value;
  const usesDefault = defaultAgent !== undefined && !hasChosen(choice.value);
  const coding_agent = usesDefault ? defaultAgent.name : choice.value.coding_agent;
  const agent = agents.find(({ name }) => name === coding_agent);
  const isLater = usesDefault && defaultAgent.isLater && agents.length > 0;
  const id = model_config_id ?? current.model_config_id;
  const model = models.find((one) => one.id === id) ?? models.find(({ is_default }) => is_default);
  const effort = reasoning_effort ?? current.reasoning_effort ?? "";
  const change = (changes: Choice): void => {
    choice.value = { ...choice.value, ...changes };
  };
  const listEfforts = (): MenuItem[] =>
    ["", ...(model?.reasoning_efforts ?? [])].map((one) => ({
      label: one === "" ? "Model default" : one,
      icon: one === effort ? "check" : undefined,
      act: () => change({ reasoning_effort: one }),
    })) as MenuItem[];
  const { coding_agent: _, ...ofModels } = choice.value;
  const listChoices = (): MenuItem[] =>
    [
      ...models.map((one) => ({
        label: one.display_name,
        note: one.isAvailable ? one.provider : "no key",
        icon: !agent && !isLater && one.id === model?.id ? "check" : undefined,
        act: () => {
          choice.value = { ...ofModels, model_config_id: one.id };
        },
      })),
      ...agents.map((one) => ({
        label: one.display_name,
        note: "Coding agent",
        icon: one.name === agent?.name ? "check" : undefined,
        act: () => {
          choice.value = { coding_agent: one.name };
        },
      })),
    ] as MenuItem[];
  const shownChoice = isLater ? { display_name: "Template default" } : (agent ?? model);
  const kind = agent ? "Coding agent" : "Model";
  return (
    <>
      {(shownChoice || agents.length > 0) && (
        <Menu label={`${kind}: ${shownChoice?.display_name ?? "none"}`} small items={listChoices} class="model">
          <span class="clip">{shownChoice?.display_name ?? "Choose an agent"}</span>
        </Menu>
      )}
      {!agent && !isLater && (model?.reasoning_efforts.length ?? 0) > 0 && (
        <Menu label="Effort" small class="desk" items={listEfforts}>
          Effort: {effort || "default"}
        </Menu>
      )}
    </>
  );
};

/** The coding agent of a chat, which cannot be changed. */
export const AgentName = ({ name }: { readonly name: string }) => {
  const agent = useAgents(true).find((one) => one.name === name);
  return (
    <span class="small mut clip" title="This chat uses a coding agent">
      {agent?.display_name ?? name}
    </span>
  );
};
