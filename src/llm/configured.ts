// The configured models, behind the interface that turns use. Updated as a whole after each change (actors/models/model-settings.ts). While
// none exist, the built-in demo model answers.

import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { ModelFeature } from "#schema/chats/model-feature.ts";
import type { ModelPrice } from "#schema/chats/model-price.ts";
import { type Adapter, loadAdapter, requiresKey } from "./adapters.ts";
import { type LoadAttachment, loadNoAttachment } from "./attachments.ts";
import { resolveChatModel } from "./chat-model.ts";
import type { ConfiguredModel, ConfiguredProvider } from "./configured-model.ts";
import { DEMO, DemoModels } from "./demo.ts";
import { createGuardedFetch, findRefusal, type GuardedFetch, type ReachableAddresses } from "./fetch.ts";
import { type LanguageModels, ModelError, type ModelEvent, type ModelInfo, type ModelRequest } from "./model.ts";
import { findPrice } from "./prices.ts";
import { shouldUseResponses } from "./request/request.ts";
import { streamModel } from "./stream.ts";

type Deps = {
  readonly clock: Clock;
  /** The private addresses that base URLs may use. */
  readonly mayReach: ReachableAddresses;
  /** Loads attached files of messages. */
  readonly loadAttachment?: LoadAttachment;
};

type ConfiguredEntry = { readonly config: ConfiguredModel; readonly provider: ConfiguredProvider };

export class ConfiguredModels implements LanguageModels {
  readonly #deps: Deps;
  readonly #demo: DemoModels;
  readonly #fetch: GuardedFetch;
  #entries = new Map<string, ConfiguredEntry>();
  #adapters = new Map<string, Promise<Adapter>>();
  #onRefused: (model_id: string, features: readonly ModelFeature[]) => void = () => {};

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#demo = new DemoModels(deps.clock);
    this.#fetch = createGuardedFetch(deps.mayReach);
  }

  /** Returns why this base URL is not allowed; undefined if it is. */
  async findUrlRefusal(base_url: string): Promise<string | undefined> {
    const { clock, mayReach: may } = this.#deps;
    return base_url === "" ? undefined : findRefusal(new URL(base_url), { clock, may });
  }

  /** Replaces all providers and models; models without a provider are ignored. Running calls continue unchanged. */
  replace(providers: readonly ConfiguredProvider[], models: readonly ConfiguredModel[]): void {
    const byId = new Map(providers.map((one) => [one.id, one]));
    const found = models.flatMap((config): ConfiguredEntry[] => {
      const provider = byId.get(config.provider_id);
      return provider ? [{ config, provider }] : [];
    });
    this.#entries = new Map(found.map((one) => [one.config.id, one]));
    this.#adapters = new Map();
  }

  /** Calls `listener` when a model's server has refused features of a request and accepted it without them. */
  onRefused(listener: (model_id: string, features: readonly ModelFeature[]) => void): void {
    this.#onRefused = listener;
  }

  /** Returns the models of one unsaved provider, for testing it. */
  draft(provider: ConfiguredProvider, model: ConfiguredModel): LanguageModels {
    const draft = new ConfiguredModels(this.#deps);
    draft.replace([provider], [model]);
    return draft;
  }

  resolve(id: string | null): ModelInfo | undefined {
    if (this.#entries.size === 0) return id === null || id === DEMO.id ? DEMO : undefined;
    const found = id === null ? this.#findUsableDefault() : this.#entries.get(id);
    if (!found || findProblem(found)) return undefined;
    const { config, provider } = found;
    // The demo model cannot summarize.
    if (provider.provider === DEMO.provider) return { ...DEMO, id: config.id, display_name: config.display_name };
    const { display_name, context_limit, compression_threshold } = config;
    const providerNames = { provider: provider.provider, provider_name: provider.display_name };
    return { id: config.id, ...providerNames, display_name, model: config.model, context_limit, compression_threshold };
  }

  resolveSideModel(id: string): ModelInfo | undefined {
    const model = resolveChatModel(this, id);
    return model?.provider === DEMO.provider ? undefined : model;
  }

  findModelPrice(id: string): ModelPrice | undefined {
    const found = this.#entries.get(id);
    return found && findPrice(found.provider.provider, found.config.model, found.config.model_config.cost);
  }

  stream(request: ModelRequest): AsyncIterable<ModelEvent> {
    const found = this.#entries.get(request.model_id);
    if (this.#entries.size === 0 && request.model_id === DEMO.id) return this.#demo.stream(request);
    if (!found)
      throw request.model_id === DEMO.id ? this.#explainMissing() : new ModelError("config", "", { reason: "gone" });
    const problem = findProblem(found);
    if (problem) throw problem;
    if (found.provider.provider === "demo") return this.#demo.stream(request);
    const { clock, loadAttachment = loadNoAttachment } = this.#deps;
    const key = toKey(found.provider);
    const adapter = this.#loadAdapter(found, key);
    const onRefused = (features: readonly ModelFeature[]): void => this.#onRefused(found.config.id, features);
    return streamModel({ ...found, adapter, key, loadAttachment, now: () => clock.now(), onRefused }, request);
  }

  #loadAdapter({ config, provider }: ConfiguredEntry, key: string): Promise<Adapter> {
    const existing = this.#adapters.get(config.id);
    if (existing) return existing;
    const { base_url } = provider;
    const { model } = config;
    const useResponses = shouldUseResponses(config);
    const loadingAdapter = loadAdapter(provider.provider, {
      base_url,
      key,
      model,
      useResponses,
      fetch: this.#fetch,
      clock: this.#deps.clock,
    });
    this.#adapters.set(config.id, loadingAdapter);
    return loadingAdapter;
  }

  /** Returns the default model, or the first available one if the default is not. */
  #findUsableDefault(): ConfiguredEntry | undefined {
    const all = [...this.#entries.values()];
    const usable = all.filter((found) => findProblem(found) === undefined);
    return usable.find(({ config }) => config.is_default) ?? usable[0];
  }

  /** Explains why a chat has no model: the problem of the default one. */
  #explainMissing(): ModelError {
    const found = [...this.#entries.values()].find(({ config }) => config.is_default);
    return (found && findProblem(found)) ?? new ModelError("config", "There is no usable model.");
  }
}

/** Returns why a model is not available; undefined if it is. */
const findProblem = ({ config, provider }: ConfiguredEntry): ModelError | undefined => {
  const { provider: kind, display_name } = provider;
  const providerNames = { provider: kind, display_name };
  if (!provider.enabled) return new ModelError("provider_disabled", "", providerNames);
  if (!config.enabled) {
    const detail = `The model ${config.display_name} is disabled.`;
    return new ModelError("provider_disabled", detail, { ...providerNames, reason: "model_disabled" });
  }
  return requiresKey(kind) && !provider.has_api_key ? new ModelError("missing_key", "", providerNames) : undefined;
};

const toKey = (provider: ConfiguredProvider): string => {
  try {
    return provider.key();
  } catch (error) {
    log("chats").error("the key of provider {provider_id} cannot be read: {error}", {
      provider_id: provider.id,
      error,
    });
    const { provider: kind, display_name } = provider;
    throw new ModelError("missing_key", "The stored key cannot be read; enter it again.", {
      provider: kind,
      display_name,
    });
  }
};
