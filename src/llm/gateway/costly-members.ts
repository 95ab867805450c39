// Finds members of a gateway call's body that make a provider answer with another model than the named one, or bill more than the price per
// token that budgets count. Pure.
import { isObject, type Json } from "./json.ts";
import { normalizeName } from "./unambiguous-body.ts";

/**
 * Proxies such as LiteLLM and OpenRouter accept these members, and Anthropic accepts `fallbacks`. Each may lead to another model, provider
 * or key.
 */
const OTHER_MODELS = [
  ...["fallbacks", "fallback_models", "context_window_fallbacks", "content_policy_fallbacks", "mock_testing_fallbacks"],
  ...["models", "model_list", "route", "provider", "plugins", "preset", "custom_llm_provider", "deployment_id"],
  ...["api_base", "base_url", "api_key", "api_version", "organization", "user_config", "litellm_credential_name"],
  // A proxy merges these into the request that it sends, or into its own settings.
  ...["extra_body", "extra_query", "extra_headers", "router_settings_override"],
];

/** Limits of the output that servers take in place of the API's own, by which a call's cost is reserved: llama.cpp and Ollama have them. */
const OTHER_LIMITS = ["n_predict", "num_predict"];

/** Members, and their values that do not change the model's price. */
const STANDARD_VALUES: Readonly<Record<string, readonly unknown[]>> = {
  service_tier: ["auto", "default", "flex", "standard", "standard_only"],
  serviceTier: ["standard", "flex"],
  speed: ["standard"],
  inference_geo: ["global"],
};

// Compared like names in case-insensitive parsers: to those, `Fallbacks` is `fallbacks`.
const OTHER_NAMES = new Set(OTHER_MODELS.map(normalizeName));
const LIMIT_NAMES = new Set(OTHER_LIMITS.map(normalizeName));
const ORDINARY_NAMES = new Map(Object.keys(STANDARD_VALUES).map((name) => [normalizeName(name), name]));

/** Returns why the body is refused, for the caller; undefined if nothing is wrong with it. */
export const findDearer = (body: Json): string | undefined => {
  for (const written in body) {
    const value = body[written];
    if (value === undefined || value === null) continue;
    const normalized = normalizeName(written);
    if (OTHER_NAMES.has(normalized))
      return `\`${written}\` can lead to another model than the named one, so this gateway refuses it. Leave it out.`;
    if (LIMIT_NAMES.has(normalized))
      return `\`${written}\` replaces the limit of the output that budgets count with. Use the API's own limit, such as \`max_tokens\`.`;
    const name = ORDINARY_NAMES.get(normalized);
    if (name === undefined) continue;
    if (written !== name) return `The body of the request has a member \`${written}\`. Write \`${name}\`.`;
    const values = STANDARD_VALUES[name];
    if (!values?.includes(value))
      return `\`${name}\` costs more than budgets count with this value. Use ${values?.join(", ")}, or leave it out.`;
  }
  return findUncounted(body);
};

/** Members inside of tools and settings that name another model, in the APIs of OpenAI, OpenRouter, Anthropic and Vertex AI. */
const MODEL_NAMES = new Set(["model", "modelName", "routingConfig", "modelSelectionConfig"].map(normalizeName));
/** Below these, JSON Schema has names and values that the caller chose, such as a parameter called `model`. */
const FREE_NAMES = new Set([
  "properties",
  "patternProperties",
  "$defs",
  "definitions",
  "enum",
  "const",
  "default",
  "examples",
]);

/**
 * Returns why tools, settings or edits of the context are refused: providers answer them with other models, or report their tokens apart from
 * the answer's.
 */
const findUncounted = (body: Json): string | undefined => {
  const { tools, tool_choice, toolConfig, generationConfig, moderation, context_management, input } = body;
  const lists = Array.isArray(input) ? input.map((item) => (isObject(item) ? item.tools : undefined)) : [];
  const allTools = [tools, ...lists].flat().filter(isObject);
  const hasAdvisor = allTools.some(({ type }) => String(type).startsWith("advisor"));
  // Proxies parse parameters that are text.
  const hasText = allTools.some(({ parameters }) => typeof parameters === "string");
  if (hasAdvisor || hasText || [tools, tool_choice, toolConfig, generationConfig, moderation, lists].some(namesModel))
    return "A tool or setting with a `model` calls another model than the named one, so this gateway refuses it.";
  // OpenAI's is a list, Anthropic's an object with a list.
  const managedContexts = [context_management].flat().filter(isObject);
  const edits = managedContexts.flatMap(({ edits: inner }) => [inner].flat().filter(isObject)).concat(managedContexts);
  if (edits.some(({ type }) => String(type).startsWith("compact")))
    return "This gateway refuses compaction by the provider, because budgets don't count its tokens.";
  return undefined;
};

/** Not recursive, because callers can nest arbitrarily deep. */
const namesModel = (value: unknown): boolean => {
  const waiting: unknown[] = [value];
  while (waiting.length > 0) {
    const one = waiting.pop();
    if (Array.isArray(one)) for (const inner of one) waiting.push(inner);
    else if (isObject(one))
      for (const name in one) {
        if (MODEL_NAMES.has(normalizeName(name))) return true;
        if (!FREE_NAMES.has(name)) waiting.push(one[name]);
      }
  }
  return false;
};
