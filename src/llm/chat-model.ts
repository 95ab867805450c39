// Selects the model of a chat. Never uses another one instead: the history may contain data that another provider must not see (rule
// MO-34).
import { DEMO } from "./demo.ts";
import type { LanguageModels, ModelInfo } from "./model.ts";

/**
 * Returns the model for this `last_model_config_id`; undefined while it is not available. A chat that used the demo model continues with
 * the default: no one chose the demo model, and it sent nothing to a provider.
 */
export const resolveChatModel = (models: LanguageModels, id: string): ModelInfo | undefined =>
  models.resolve(id) ?? (id === DEMO.id ? models.resolve(null) : undefined);
