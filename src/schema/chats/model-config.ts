// Wire shapes of the models that chats can use, and of a model's call settings (facts/chats 5.8 and 6).
import { type Static, type TSchema, Type as t } from "@sinclair/typebox";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";
import { strictObject } from "../strict.ts";
import { lineText } from "../text.ts";
import { MODEL_FEATURES } from "./model-feature.ts";
import { ModelCost, ModelPrice } from "./model-price.ts";
import { PROVIDER_KINDS } from "./model-provider.ts";

/** From least to most. */
export const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const;
export type Effort = (typeof EFFORTS)[number];

const effort = (description: string) => t.Optional(oneOf(EFFORTS, description));
const number = (description: string) => t.Optional(t.Number({ description }));
const tokens = (description: string) => t.Optional(t.Integer({ description }));
const absent = <T extends TSchema>(schema: T) => t.Optional(schema);

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
    reasoning: absent(
      strictObject({
        default: effort("When a chat does not say how hard to think."),
        max: effort("The maximum reasoning effort. Requests for more are capped."),
      }),
    ),
    cost: absent(ModelCost),
    unsupported: absent(
      t.Array(oneOf(MODEL_FEATURES), {
        maxItems: MODEL_FEATURES.length,
        uniqueItems: true,
        description:
          "Parameters that are omitted from every request to this model because its server rejects them. Slipway adds entries automatically; remove one to try it again.",
      }),
    ),
    provider_options: absent(
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

const fields = {
  model: lineText({
    maxLength: 256,
    description: "The provider's name for the model; unique within a provider (otherwise 409).",
  }),
  display_name: lineText({ maxLength: 128 }),
  enabled: t.Boolean(),
  is_default: t.Boolean({
    description:
      "Whether chats that name no model use this one. At most one model is the default, and only a model that responds can become it.",
  }),
  context_limit: t.Integer({ description: "The maximum number of tokens in the history; more than 0." }),
  compression_threshold: t.Union([t.Integer(), t.Null()], {
    description:
      "The percentage of the context window at which the history is compacted, 0 to 100. If null, it depends on the size of the context window.",
  }),
  model_config: CallConfig,
};

export const ModelConfig = namedObject("ModelConfig", {
  id: t.String({ format: "uuid" }),
  provider: oneOf(PROVIDER_KINDS),
  provider_id: t.String({ format: "uuid" }),
  model: t.String(),
  display_name: t.String(),
  enabled: t.Boolean(),
  is_default: t.Boolean(),
  context_limit: t.Integer(),
  compression_threshold: absent(t.Integer()),
  model_config: CallConfig,
  reasoning_efforts: t.Array(t.String(), { description: "The reasoning efforts that a chat can request." }),
  price: absent(ModelPrice),
  created_at: t.String({ format: "date-time" }),
  updated_at: t.String({ format: "date-time" }),
});
export type ModelConfig = Static<typeof ModelConfig>;

export const CreateModelConfig = namedObject("CreateModelConfig", {
  provider: absent(
    t.String({ maxLength: 64, description: "The provider's kind. Sufficient if only one provider is of this kind." }),
  ),
  provider_id: absent(
    t.String({ format: "uuid", description: "The provider's ID. Required if several providers are of the same kind." }),
  ),
  model: fields.model,
  display_name: absent(fields.display_name),
  enabled: absent(fields.enabled),
  is_default: absent(fields.is_default),
  context_limit: absent(fields.context_limit),
  compression_threshold: absent(fields.compression_threshold),
  model_config: absent(fields.model_config),
});
export type CreateModelConfig = Static<typeof CreateModelConfig>;

export const UpdateModelConfig = named("UpdateModelConfig", t.Partial(t.Object(fields)));
export type UpdateModelConfig = Static<typeof UpdateModelConfig>;

/** The result of a test prompt to a model. */
export const TriedModel = namedObject("TriedModel", {
  works: t.Boolean(),
  answer: t.String({ description: "The text of the model's response, at most 400 characters." }),
  problem: absent(t.String({ description: "Why the model did not respond." })),
  first_ms: t.Integer({ description: "The time until the first token, in milliseconds." }),
  total_ms: t.Integer(),
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
      provider: oneOf(PROVIDER_KINDS),
      display_name: t.String(),
      available: t.Boolean(),
      unavailable_reason: absent(oneOf(UNAVAILABLE_REASONS)),
      models: t.Array(
        t.Object({
          id: t.String({ format: "uuid", description: "The ID that chats send as `model_config_id`." }),
          provider: oneOf(PROVIDER_KINDS),
          model: t.String(),
          display_name: t.String(),
          is_default: t.Boolean(),
          context_limit: t.Integer(),
          reasoning_efforts: t.Array(t.String()),
        }),
      ),
    }),
  ),
});
export type AvailableModels = Static<typeof AvailableModels>;
