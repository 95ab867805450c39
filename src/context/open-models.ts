// Language models: those that are configured, counted and paid for. Each node has them in memory, and their settings are written at one.
import { ModelLedger } from "#actors/chat/spending/ledger.ts";
import { MeteredModels } from "#actors/chat/spending/metered-models.ts";
import { ModelSettings } from "#actors/models/model-settings.ts";
import type { Clock } from "#base/clock.ts";
import { onlyThisMachine } from "#base/config.ts";
import type { Metrics } from "#base/metrics.ts";
import { otherNodes } from "#base/parts.ts";
import { within } from "#base/retry.ts";
import { isTraced } from "#base/spans.ts";
import type { Blobs } from "#db/blobs.ts";
import { readAttachment } from "#db/chats/files.ts";
import { tracedModels } from "#src/api/metrics/model-spans.ts";
import { countedModels } from "#src/api/metrics/models.ts";
import { ConfiguredModels } from "#src/llm/configured.ts";
import { guardedFetch } from "#src/llm/fetch.ts";
import type { LanguageModels } from "#src/llm/model.ts";
import type { Base } from "./base.ts";
import type { Far } from "./far-actors.ts";

type Parts = Pick<Base, "config" | "clock" | "store" | "encryption" | "topics" | "far"> & {
  readonly blobs: Blobs;
  readonly metrics: Metrics | undefined;
  /** Others than the configured ones, in tests. */
  readonly models: LanguageModels | undefined;
};

const MODELS = "models";
/** A node that does not say so by then learns of it as soon as it hears anything, and of everything when it has heard nothing for a while. */
const LOADED_MS = 2_000;

export const openModels = ({ config, clock, store, encryption, topics, blobs, metrics, models, far }: Parts) => {
  const hosts = config.model_hosts ?? [];
  const mayReach = { private: onlyThisMachine(config), hosts, continuesTrace: config.otlp_propagate_to_models };
  const configured = new ConfiguredModels({
    clock,
    mayReach,
    attachments: (id) => readAttachment({ store, blobs }, id),
  });
  const asked = models ?? configured;
  const counted = metrics ? countedModels(asked, metrics) : asked;
  const traced = isTraced() ? tracedModels(counted) : counted;
  const tellNodes = far && (() => tell(far, clock));
  const modelSettings = new ModelSettings({ store, clock, encryption, topics, models: configured, tellNodes });
  far?.links.serve(MODELS, () => modelSettings.load());
  const modelFetch = guardedFetch(mayReach);
  const ledger = new ModelLedger({ store, clock, onNotified: (user_id) => topics.publish("notified", user_id, {}) });
  return { models: new MeteredModels({ store, ledger, models: traced }), modelSettings, modelFetch, ledger };
};

const tell = async ({ parts, links }: Far, clock: Clock): Promise<void> => {
  const loads = otherNodes(parts).map((node) => links.call(node, MODELS, {}));
  await within(clock, LOADED_MS, Promise.allSettled(loads));
};
