// Model and effort of the next message.
import { type Signal, useSignal } from "@preact/signals";
import type { AvailableModels } from "#schema/chats/model-config.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Menu, type MenuItem } from "../../parts/menu.tsx";

export type Choice = {
  /** Undefined: as the chat has it, or the default. */
  readonly model_config_id?: string;
  readonly reasoning_effort?: string;
};

export type Model = AvailableModels["providers"][number]["models"][number] & { readonly isAvailable: boolean };

/** All models there are. */
export const useModels = (): readonly Model[] => {
  const { state } = useResource("chat models", () => call("GET /chats/models"));
  return (state.value.data?.providers ?? []).flatMap(({ models, available }) =>
    models.map((model) => ({ ...model, isAvailable: available })),
  );
};

export const useChoice = (): Signal<Choice> => useSignal<Choice>({});

type ChoicesProps = {
  readonly choice: Signal<Choice>;
  /** What counts where nothing was chosen. */
  readonly now: { readonly model_config_id?: string; readonly reasoning_effort?: string };
};

export const Choices = ({ choice, now }: ChoicesProps) => {
  const models = useModels();
  const { model_config_id, reasoning_effort } = choice.value;
  const id = model_config_id ?? now.model_config_id;
  const model = models.find((one) => one.id === id) ?? models.find(({ is_default }) => is_default);
  const effort = reasoning_effort ?? now.reasoning_effort ?? "";
  const set = (more: Choice): void => {
    choice.value = { ...choice.value, ...more };
  };
  const efforts = (): MenuItem[] =>
    ["", ...(model?.reasoning_efforts ?? [])].map((one) => ({
      label: one === "" ? "As the model has it" : one,
      icon: one === effort ? "check" : undefined,
      act: () => set({ reasoning_effort: one }),
    })) as MenuItem[];
  const offered = (): MenuItem[] =>
    models.map((one) => ({
      label: one.display_name,
      note: one.isAvailable ? one.provider : "no key",
      icon: one.id === model?.id ? "check" : undefined,
      act: () => set({ model_config_id: one.id }),
    })) as MenuItem[];
  return (
    <>
      {model && (
        <Menu label={`Model: ${model.display_name}`} small items={offered} class="model">
          <span class="clip">{model.display_name}</span>
        </Menu>
      )}
      {(model?.reasoning_efforts.length ?? 0) > 0 && (
        <Menu label="Effort" small class="desk" items={efforts}>
          Effort: {effort || "default"}
        </Menu>
      )}
    </>
  );
};
