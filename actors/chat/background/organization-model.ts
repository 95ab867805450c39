// The organization's configured model for sub-chats, titles and compaction (facts/chats 4.19).
import { readOrganizationModel } from "#db/chats/settings.ts";
import type { Store } from "#db/engine/store.ts";
import type { OrganizationContext } from "#schema/chats/model-override.ts";
import type { LanguageModels, ModelInfo } from "#src/llm/model.ts";

type Deps = { readonly store: Store; readonly models: LanguageModels };
export type OrganizationModel = { readonly model: ModelInfo; readonly reasoning_effort: string };

/** Returns undefined when no model is configured, and "unusable" when it cannot be used now. */
export const resolveOrganizationModel = async (
  { store, models }: Deps,
  organization_id: string,
  context: OrganizationContext,
): Promise<OrganizationModel | "unusable" | undefined> => {
  const set = await readOrganizationModel(store, organization_id, context);
  if (set?.mode !== "model" || set.model_config_id === undefined) return undefined;
  const model = models.resolve(set.model_config_id);
  return model ? { model, reasoning_effort: set.reasoning_effort ?? "" } : "unusable";
};
