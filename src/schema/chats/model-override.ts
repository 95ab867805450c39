// Wire shapes of the models that users and organizations choose for each purpose (facts/chats 4.19).
import { type Static, Type as t } from "@sinclair/typebox";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";

/** root: chats started by users. general, explore: sub-chats. */
export const OVERRIDE_CONTEXTS = ["root", "general", "explore"] as const;
export type OverrideContext = (typeof OVERRIDE_CONTEXTS)[number];
export const OVERRIDE_MODES = ["deployment_default", "chat_default", "model"] as const;

const modelConfigId = t.Optional(
  t.String({ format: "uuid", description: "The ID of the model. Only for the mode `model`." }),
);
const chosenEffort = t.Optional(
  t.String({ description: "The reasoning effort. Only for the mode `model`; absent for the model's default." }),
);

const mode = named(
  "ModelOverrideMode",
  oneOf(
    OVERRIDE_MODES,
    "How the model is chosen. `deployment_default`: the deployment's choice (not for `root`). `chat_default`: the chat's model or, for `root`, the default model. `model`: the model in `model_config_id`.",
  ),
);

export const ModelOverride = namedObject("ModelOverride", {
  context: oneOf(
    OVERRIDE_CONTEXTS,
    "The chats that the choice is for. `root`: chats that you start. `explore`: sub-chats that only read. `general`: other sub-chats.",
  ),
  mode,
  model_config_id: modelConfigId,
  reasoning_effort: chosenEffort,
});
export type ModelOverride = Static<typeof ModelOverride>;

export const PutModelOverride = namedObject("PutModelOverride", {
  mode,
  model_config_id: modelConfigId,
  reasoning_effort: t.Optional(
    t.String({
      maxLength: 64,
      description: "The reasoning effort, only for the mode `model`: none, minimal, low, medium, high, xhigh or max.",
    }),
  ),
});
export type PutModelOverride = Static<typeof PutModelOverride>;

/** The purposes for which an organization can choose a model. */
export const ORGANIZATION_CONTEXTS = ["general", "explore", "title_generation", "compaction"] as const;
export type OrganizationContext = (typeof ORGANIZATION_CONTEXTS)[number];
export const ORGANIZATION_MODES = ["chat_default", "model"] as const;

const organizationMode = named(
  "OrganizationOverrideMode",
  oneOf(
    ORGANIZATION_MODES,
    "How the model is chosen. `chat_default`: the chat's model. `model`: the model in `model_config_id`.",
  ),
);

export const OrganizationOverride = namedObject("OrganizationOverride", {
  context: oneOf(
    ORGANIZATION_CONTEXTS,
    "What the model is used for. `explore`: sub-chats that only read. `general`: other sub-chats. `title_generation`: titles of chats. `compaction`: summaries that replace the history.",
  ),
  mode: organizationMode,
  model_config_id: modelConfigId,
  reasoning_effort: chosenEffort,
});
export type OrganizationOverride = Static<typeof OrganizationOverride>;

export const PutOrganizationOverride = namedObject("PutOrganizationOverride", {
  ...PutModelOverride.properties,
  mode: organizationMode,
});
export type PutOrganizationOverride = Static<typeof PutOrganizationOverride>;
