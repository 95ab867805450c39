// Wire shapes of model providers (facts/chats 6). The API key can be set but never read.
import { type Static, Type as t } from "@sinclair/typebox";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";
import { lineText } from "../text.ts";

export const PROVIDER_KINDS = ["anthropic", "openai", "google", "openai-compat", "demo"] as const;
export type ProviderKind = (typeof PROVIDER_KINDS)[number];

const fields = {
  display_name: lineText({ maxLength: 128, description: "Unique among providers of one kind (otherwise 409)." }),
  base_url: t.String({
    maxLength: 2_048,
    description:
      "Where its API begins, such as http://127.0.0.1:11434/v1. Empty: the provider's own address; openai-compat has none.",
  }),
  api_key: t.String({ description: "Stored encrypted and never shown again. An empty text removes it." }),
  enabled: t.Boolean({ description: "Chats cannot use a disabled provider." }),
};

export const ModelProvider = namedObject("ModelProvider", {
  id: t.String({ format: "uuid" }),
  provider: oneOf(PROVIDER_KINDS),
  display_name: t.String(),
  base_url: t.String(),
  enabled: t.Boolean(),
  has_api_key: t.Boolean(),
  created_at: t.String({ format: "date-time" }),
  updated_at: t.String({ format: "date-time" }),
});
export type ModelProvider = Static<typeof ModelProvider>;

export const CreateModelProvider = namedObject("CreateModelProvider", {
  provider: t.String({ maxLength: 64, description: `${PROVIDER_KINDS.join(", ")}.` }),
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
    t.String({ format: "uuid", description: "An existing provider; other members replace its stored values." }),
  ),
  provider: t.Optional(t.String({ maxLength: 64, description: `${PROVIDER_KINDS.join(", ")}; needed without an id.` })),
  base_url: t.Optional(fields.base_url),
  api_key: t.Optional(fields.api_key),
  model: t.Optional(lineText({ maxLength: 256, description: "The model to test." })),
});
export type TryModelProvider = Static<typeof TryModelProvider>;

/** The result of testing a provider that is not saved yet. */
export const TriedProvider = namedObject("TriedProvider", {
  works: t.Boolean(),
  models: t.Array(t.String(), { description: "From the provider's own list; empty if it has none." }),
  answer: t.Optional(t.String({ description: "What the model said." })),
  problem: t.Optional(t.String({ description: "Why it does not work." })),
});
export type TriedProvider = Static<typeof TriedProvider>;
