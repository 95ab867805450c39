// Chooses a sub-chat's model: the model that the call names, else the one that its owner or organization configured for such sub-chats,
// else the model of its root chat
// (facts/chats 4.19 and 5.9).

import type { ChatRow } from "#db/chats/chats.ts";
import { readChatSetting, readModelOverride } from "#db/chats/settings.ts";
import type { Store } from "#db/engine/store.ts";
import { listModelConfigs } from "#db/models/models.ts";
import { listAllowedEfforts } from "#schema/chats/model-config.ts";
import type { LanguageModels } from "#src/llm/model.ts";
import type { SpawnInput } from "#src/tools/subagents/agents.ts";
import { ToolError } from "#src/tools/tool.ts";

import { resolveOrganizationModel } from "../background/organization-model.ts";

type Deps = { readonly store: Store; readonly models: LanguageModels };
type ChosenModel = { readonly model_config_id: string; readonly reasoning_effort: string };

/** Throws `ToolError` for an unusable model. */
export const chooseSubagentModel = async (deps: Deps, root: ChatRow, input: SpawnInput): Promise<ChosenModel> => {
  const { model_config_id, reasoning_effort } = input;
  if (model_config_id !== undefined) {
    const model = deps.models.resolve(model_config_id.trim().toLowerCase());
    if (!model) throw new ToolError("No usable model has this model_config_id. Omit it to use the default.");
    return { model_config_id: model.id, reasoning_effort: reasoning_effort ?? "" };
  }
  const wanted = await loadOverride(deps, root, input.type);
  const { last_model_config_id, last_reasoning_effort } = root;
  const chosen = wanted ?? { model_config_id: last_model_config_id, reasoning_effort: last_reasoning_effort };
  return reasoning_effort === undefined ? chosen : { ...chosen, reasoning_effort };
};

/** Returns the models that `spawn` accepts; without any configured model, the built-in one. */
export const listSubagentModels = async ({ store, models }: Deps) => {
  const rows = (await store.all(listModelConfigs())).filter(({ id }) => models.resolve(id) !== undefined);
  const [builtIn] = rows.length === 0 ? [models.resolve(null)] : [];
  return [
    ...rows.map(({ id, display_name, model, is_default, model_config }) => ({
      model_config_id: id,
      display_name,
      model,
      is_default,
      reasoning_efforts: listAllowedEfforts(model_config),
    })),
    ...(builtIn ? [{ model_config_id: builtIn.id, display_name: builtIn.display_name, is_default: true }] : []),
  ];
};

/** Returns undefined when no model is configured, or it is unusable now. */
const loadOverride = async (
  { store, models }: Deps,
  { organization_id, owner_id: user_id }: ChatRow,
  type: SpawnInput["type"],
): Promise<ChosenModel | undefined> => {
  const context = type === "explore" ? "explore" : "general";
  const isAllowed = await readChatSetting(store, "allow_model_overrides");
  const set = isAllowed ? await readModelOverride(store, { organization_id, user_id, context }) : undefined;
  if (set?.mode === "chat_default") return undefined;
  if (set?.mode === "model" && set.model_config_id !== undefined && models.resolve(set.model_config_id)) {
    return { model_config_id: set.model_config_id, reasoning_effort: set.reasoning_effort ?? "" };
  }
  const wanted = await resolveOrganizationModel({ store, models }, organization_id, context);
  if (wanted === undefined || wanted === "unusable") return undefined;
  return { model_config_id: wanted.model.id, reasoning_effort: wanted.reasoning_effort };
};
