// Which model answers a chat. Never another than its own: the history may hold what another provider must not see (rule MO-34).
import { DEMO } from "./demo.ts";
import type { LanguageModels, ModelInfo } from "./model.ts";

/**
 * The model of a chat that has this `last_model_config_id`; undefined while it cannot be used. A chat that the demo model has answered
 * continues with the default: no one has chosen that, and it was sent nowhere.
 */
export const chatModel = (models: LanguageModels, id: string): ModelInfo | undefined =>
  models.resolve(id) ?? (id === DEMO.id ? models.resolve(null) : undefined);
