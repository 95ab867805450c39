// Language models: those that are configured, counted and paid for.
import { MeteredModels } from "#actors/chat/spending/metered-models.ts";
import { ModelSettings } from "#actors/models/model-settings.ts";
import { onlyThisMachine } from "#base/config.ts";
import type { Metrics } from "#base/metrics.ts";
import type { Blobs } from "#db/blobs.ts";
import { readAttachment } from "#db/chats/files.ts";
import { countedModels } from "#src/api/metrics/models.ts";
import { ConfiguredModels } from "#src/llm/configured.ts";
import type { LanguageModels } from "#src/llm/model.ts";
import type { Base } from "./base.ts";

type Parts = Pick<Base, "config" | "clock" | "store" | "encryption" | "topics"> & {
  readonly blobs: Blobs;
  readonly metrics: Metrics | undefined;
  /** Others than the configured ones, in tests. */
  readonly models: LanguageModels | undefined;
};

export const openModels = ({ config, clock, store, encryption, topics, blobs, metrics, models }: Parts) => {
  const configured = new ConfiguredModels({
    clock,
    mayReach: { private: onlyThisMachine(config), hosts: config.model_hosts ?? [] },
    attachments: (id) => readAttachment({ store, blobs }, id),
  });
  const asked = models ?? configured;
  const counted = metrics ? countedModels(asked, metrics) : asked;
  return {
    models: new MeteredModels({ store, clock, models: counted }),
    modelSettings: new ModelSettings({ store, clock, encryption, topics, models: configured }),
  };
};
