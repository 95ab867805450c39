// Health finding about the default model: a warning while chats have none to start with. Pure.
import type { ModelConfigRow, ModelProviderRow } from "#actors/models/model-settings.ts";
import type { Finding } from "./finding.ts";

type Everything = { readonly providers: readonly ModelProviderRow[]; readonly models: readonly ModelConfigRow[] };

/** Returns a warning when models exist and none of them is an enabled default. */
export const checkDefaultModel = ({ providers, models }: Everything): Finding[] => {
  const isOn = (one: ModelConfigRow): boolean =>
    one.enabled && providers.some(({ id, enabled }) => id === one.provider_id && enabled);
  if (models.length === 0 || models.some((one) => one.is_default && isOn(one))) return [];
  const detail =
    "There is no default model. New chats use the first enabled model, which may not respond. Choose a default in Administration > Models.";
  return [{ name: "models", status: "warn", detail }];
};
