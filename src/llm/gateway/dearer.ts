// Finds members of a gateway call's body that make a provider answer with another model than the named one, or bill more than the price per
// token that budgets count. Pure.
import type { Json } from "./json.ts";

/** Proxies such as LiteLLM and OpenRouter take these, Anthropic `fallbacks`: each may lead to another model, provider or key. */
const OTHER_MODELS = [
  ...["fallbacks", "fallback_models", "context_window_fallbacks", "content_policy_fallbacks", "mock_testing_fallbacks"],
  ...["models", "model_list", "route", "provider", "plugins", "preset", "custom_llm_provider"],
  ...["api_base", "base_url", "api_key", "user_config"],
];

/** Members with the values that cost what the model's price says. */
const ORDINARY: Readonly<Record<string, readonly unknown[]>> = {
  service_tier: ["auto", "default", "flex", "standard", "standard_only"],
  serviceTier: ["standard", "flex"],
  speed: ["standard"],
};

/** Returns why the body is refused, for the caller; undefined if nothing is wrong with it. */
export const findDearer = (body: Json): string | undefined => {
  const isGiven = (name: string): boolean => body[name] !== undefined && body[name] !== null;
  const other = OTHER_MODELS.find(isGiven);
  if (other !== undefined)
    return `\`${other}\` can lead to another model than the named one, so this gateway refuses it. Leave it out.`;
  const dear = Object.keys(ORDINARY).find((name) => isGiven(name) && !ORDINARY[name]?.includes(body[name]));
  return dear && `\`${dear}\` costs more than budgets count, so this gateway takes only ${ORDINARY[dear]?.join(", ")}.`;
};
