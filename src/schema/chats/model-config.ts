// Wire shapes of the models that chats can use, and of a model's call settings (facts/chats 5.8 and 6).
import { type Static, Type as t } from "@sinclair/typebox";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";
import { strictObject } from "../strict.ts";
import { lineText } from "../text.ts";
import { MODEL_FEATURES } from "./model-feature.ts";
import { ModelCost, ModelPrice } from "./model-price.ts";
import { providerKind } from "./model-provider.ts";

/** From least to most. */
export const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const;
export type Effort = (typeof EFFORTS)[number];

const effort = (description: string) => t.Optional(oneOf(EFFORTS, description));
const number = (description: string) => t.Optional(t.Number({ description }));
const tokens = (description: string) => t.Optional(t.Integer({ description }));

// Strict: with a misspelled `cost`, the model would have no price and spend limits would not see it.
export const CallConfig = named(
  "ModelCallConfig",
  strictObject({
    max_output_tokens: tokens("The maximum number of tokens in a response."),
    temperature: number("The sampling temperature, 0 to 2."),
    top_p: number("The nucleus sampling threshold, 0 to 1."),
    top_k: tokens("The number of most likely tokens to sample from, 1 or more."),
    presence_penalty: number("The presence penalty, -2 to 2."),
    frequency_penalty: number("The frequency penalty, -2 to 2."),
    reasoning: t.Optional(
      strictObject(
        {
          default: effort("The reasoning effort of chats that choose none. If absent, the provider's default."),
          max: effort("The maximum reasoning effort. Requests for more are capped."),
        },
        { description: "The reasoning effort of the model." },
      ),
    ),
    cost: t.Optional({
      ...ModelCost,
      description: "The price of the model. If absent, that of the provider's price list, if the model is in it.",
    }),
    unsupported: t.Optional(
      t.Array(oneOf(MODEL_FEATURES), {
        maxItems: MODEL_FEATURES.length,
        uniqueItems: true,
        description:
          "Parameters that are omitted from every request to this model because its server rejects them. Slipway adds entries automatically; remove one to try it again.",
      }),
    ),
    provider_options: t.Optional(
      t.Record(t.String(), t.Unknown(), {
        description:
          "Provider-specific options, passed through unchanged. Slipway reads `web_search_enabled` (the provider searches the web), `allowed_domains`, `blocked_domains` and `use_responses_api` (OpenAI; default true).",
      }),
    ),
  }),
);
export type CallConfig = Static<typeof CallConfig>;

/** Returns the efforts a chat can request, up to the model's maximum. */
export const listAllowedEfforts = ({ reasoning }: CallConfig): Effort[] =>
  reasoning?.max ? EFFORTS.slice(0, EFFORTS.indexOf(reasoning.max) + 1) : [...EFFORTS];

const contextLimit = t.Integer({ description: "The size of the model's context window in tokens; more than 0." });

const fields = {
  model: lineText({
    maxLength: 256,
    description: "The provider's name for the model; unique within a provider (otherwise 409).",
  }),
  display_name: lineText({ maxLength: 128, description: "The display name of the model; default: `model`." }),
  enabled: t.Boolean({ description: "Whether chats can use the model." }),
  is_default: t.Boolean({
    description:
      "Whether chats that name no model use this one. At most one model is the default, and only a model that responds can become it.",
  }),
  context_limit: contextLimit,
  compression_threshold: t.Union([t.Integer(), t.Null()], {
    description:
      "The percentage of the context window at which the history is compacted, 0 to 100. If null, it depends on the size of the context window.",
  }),
  model_config: { ...CallConfig, description: "The settings of calls, and the price of the model." },
};

export const ModelConfig = namedObject("ModelConfig", {
  id: t.String({ format: "uuid" }),
  provider: providerKind,
  provider_id: t.String({ format: "uuid", description: "The ID of the model's provider." }),
  model: t.String({ description: "The provider's name for the model." }),
  display_name: t.String(),
  enabled: fields.enabled,
  is_default: t.Boolean({ description: "Whether chats that choose no model use this one." }),
  context_limit: contextLimit,
  compression_threshold: t.Optional(
    t.Integer({
      description:
        "The percentage of the context window at which the history is compacted. If absent, it depends on the size of the context window.",
    }),
  ),
  model_config: fields.model_config,
  reasoning_efforts: t.Array(t.String(), { description: "The reasoning efforts that a chat can request." }),
  price: t.Optional({ ...ModelPrice, description: "The price that calls are charged at; absent if unknown." }),
  created_at: t.String({ format: "date-time" }),
  updated_at: t.String({ format: "date-time" }),
});
export type ModelConfig = Static<typeof ModelConfig>;

export const CreateModelConfig = namedObject("CreateModelConfig", {
  provider: t.Optional(
    t.String({ maxLength: 64, description: "The provider's kind. Sufficient if only one provider is of this kind." }),
  ),
  provider_id: t.Optional(
    t.String({ format: "uuid", description: "The provider's ID. Required if several providers are of the same kind." }),
  ),
  model: fields.model,
  display_name: t.Optional(fields.display_name),
  enabled: t.Optional(fields.enabled),
  is_default: t.Optional(fields.is_default),
  context_limit: t.Optional(fields.context_limit),
  compression_threshold: t.Optional(fields.compression_threshold),
  model_config: t.Optional(fields.model_config),
});
export type CreateModelConfig = Static<typeof CreateModelConfig>;

export const UpdateModelConfig = named("UpdateModelConfig", t.Partial(t.Object(fields)));
export type UpdateModelConfig = Static<typeof UpdateModelConfig>;

/** The result of a test prompt to a model. */
export const TriedModel = namedObject("TriedModel", {
  works: t.Boolean({ description: "Whether the model responded to a test prompt within a minute." }),
  answer: t.String({ description: "The text of the model's response, at most 400 characters." }),
  problem: t.Optional(t.String({ description: "Why the model did not respond." })),
  first_ms: t.Integer({ description: "The time until the first token, in milliseconds." }),
  total_ms: t.Integer({ description: "The time until the end of the response, in milliseconds." }),
  output_tokens: t.Integer({
    description: "The number of output tokens, as reported by the provider; 0 if it doesn't report it.",
  }),
});
export type TriedModel = Static<typeof TriedModel>;

/** Why a provider is unavailable now (facts/chats 5.8). */
export const UNAVAILABLE_REASONS = ["missing_api_key", "fetch_failed", "user_api_key_required"] as const;

export const AvailableModels = namedObject("AvailableModels", {
  providers: t.Array(
    t.Object({
      provider: providerKind,
      display_name: t.String(),
      available: t.Boolean({ description: "Whether chats can use the provider's models now." }),
      unavailable_reason: t.Optional(
        oneOf(
          UNAVAILABLE_REASONS,
          "Why the provider is unavailable; absent if it is available. `missing_api_key`: an administrator must add its API key.",
        ),
      ),
      models: t.Array(
        t.Object({
          id: t.String({ format: "uuid", description: "The ID that chats send as `model_config_id`." }),
          provider: providerKind,
          model: ModelConfig.properties.model,
          display_name: t.String(),
          is_default: ModelConfig.properties.is_default,
          context_limit: contextLimit,
          reasoning_efforts: ModelConfig.properties.reasoning_efforts,
        }),
      ),
    }),
  ),
});
export type AvailableModels = Static<typeof AvailableModels>;
