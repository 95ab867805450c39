// Wire shapes of model providers (facts/chats 6). The API key can be set but never read.
import { type Static, Type as t } from "@sinclair/typebox";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";
import { lineText } from "../text.ts";

export const PROVIDER_KINDS = ["anthropic", "openai", "google", "openai-compat", "demo"] as const;
export type ProviderKind = (typeof PROVIDER_KINDS)[number];
export const providerKind = oneOf(
  PROVIDER_KINDS,
  "The provider's kind. `openai-compat`: any server with OpenAI's API. `demo`: the built-in demo, not a real model.",
);

const fields = {
  display_name: lineText({
    maxLength: 128,
    description: "The display name; unique among providers of the same kind (otherwise 409).",
  }),
  base_url: t.String({
    maxLength: 2_048,
    description:
      "The base URL of the provider's API, such as http://127.0.0.1:11434/v1. If empty, the provider's own URL; openai-compat has none.",
  }),
  api_key: t.String({
    description: "The provider's API key. Stored encrypted and never returned. An empty string removes it.",
  }),
  enabled: t.Boolean({ description: "Whether chats can use the provider." }),
};

export const ModelProvider = namedObject("ModelProvider", {
  id: t.String({ format: "uuid" }),
  provider: providerKind,
  display_name: t.String(),
  base_url: t.String({ description: "The base URL of the provider's API; empty for the provider's own URL." }),
  enabled: fields.enabled,
  has_api_key: t.Boolean({ description: "Whether an API key is stored." }),
  created_at: t.String({ format: "date-time" }),
  updated_at: t.String({ format: "date-time" }),
});
export type ModelProvider = Static<typeof ModelProvider>;

export const CreateModelProvider = namedObject("CreateModelProvider", {
  provider: t.String({ maxLength: 64, description: `The provider's kind: ${PROVIDER_KINDS.join(", ")}.` }),
  display_name: t.Optional(fields.display_name),
  base_url: t.Optional(fields.base_url),
  api_key: t.Optional(fields.api_key),
  enabled: t.Optional(fields.enabled),
});
export type CreateModelProvider = Static<typeof CreateModelProvider>;

export const UpdateModelProvider = named("UpdateModelProvider", t.Partial(t.Object(fields)));
export type UpdateModelProvider = Static<typeof UpdateModelProvider>;

export const TryModelProvider = namedObject("TryModelProvider", {
  provider_id: t.Optional(
    t.String({
      format: "uuid",
      description: "The ID of an existing provider. The other fields replace its stored values.",
    }),
  ),
  provider: t.Optional(
    t.String({
      maxLength: 64,
      description: `The provider's kind: ${PROVIDER_KINDS.join(", ")}. Needed if there is no provider_id.`,
    }),
  ),
  base_url: t.Optional(fields.base_url),
  api_key: t.Optional(fields.api_key),
  model: t.Optional(lineText({ maxLength: 256, description: "The model to test." })),
});
export type TryModelProvider = Static<typeof TryModelProvider>;

/** The result of testing a provider that is not saved yet. */
export const TriedProvider = namedObject("TriedProvider", {
  works: t.Boolean({
    description: "Whether the provider accepts the key and, if a model is given, the model responds.",
  }),
  models: t.Array(t.String(), { description: "The models that the provider lists; empty if it doesn't list models." }),
  answer: t.Optional(t.String({ description: "The text of the model's response." })),
  problem: t.Optional(t.String({ description: "Why the provider does not work." })),
});
export type TriedProvider = Static<typeof TriedProvider>;
