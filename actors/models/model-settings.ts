// Language model providers, their models and the gateway settings: the only writer of their rows. Changes are serialized, each in one
// commit, and applied to the models on every node before the caller is answered. API keys are encrypted here and decrypted by the code that
// calls a provider; nothing here logs or returns one.

import type { Clock } from "#base/clock.ts";
import type { Encryption } from "#base/encryption.ts";
import { AppError, conflict, invalid, invalidField, notFound, type Validation } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { createSerialQueue } from "#base/retry.ts";
import type { Topics } from "#base/topics.ts";
import type { Statement } from "#db/engine/sql.ts";
import { CommitError, type Store } from "#db/engine/store.ts";
import { readGatewaySettings, upsertGatewaySettings } from "#db/models/gateway.ts";
import {
  clearDefaultModel,
  insertModelConfig,
  insertModelProvider,
  listModelConfigs,
  listModelProviders,
  type ModelConfigRow,
  type ModelProviderRow,
  updateModelConfig,
  updateModelProvider,
} from "#db/models/models.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import type { GatewaySettings } from "#schema/ai/gateway.ts";
import type { ModelFeature } from "#schema/chats/model-feature.ts";
import type { ConfiguredModels } from "#src/llm/configured.ts";
import type { ConfiguredModel, ConfiguredProvider } from "#src/llm/configured-model.ts";
import type { LanguageModels } from "#src/llm/model.ts";
import type { Events } from "../runtime/events.ts";

type Deps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly encryption: Encryption;
  readonly models: ConfiguredModels;
  readonly topics: Topics<Events>;
  /** Called when the stored state has changed. Resolves when all servers that use it have loaded it, or cannot be waited for. Never rejects. */
  readonly onChanged?: (() => Promise<unknown>) | undefined;
};

export type NewProvider = Pick<ModelProviderRow, "provider" | "display_name" | "base_url" | "enabled"> & {
  /** Empty for no key. */
  readonly api_key: string;
};
/** An absent `api_key` is unchanged; an empty one is removed. */
export type ProviderPatch = Partial<Omit<NewProvider, "provider">>;

export type NewModel = Omit<ModelConfigRow, "id" | "created_at" | "updated_at" | "deleted">;
export type ModelPatch = Partial<Omit<NewModel, "provider_id">>;

/** Everything that a model call depends on. */
export type ModelCatalog = {
  readonly settings: Required<GatewaySettings>;
  readonly providers: readonly ConfiguredProvider[];
  readonly models: readonly ConfiguredModel[];
};

type ProvidersAndModels = { readonly providers: ModelProviderRow[]; readonly models: ModelConfigRow[] };

export class ModelSettings {
  readonly #deps: Deps;
  /** Serializes changes. */
  readonly #serialize = createSerialQueue();
  /** A load that has not begun yet, shared by all callers until it does. */
  #loading: Promise<void> | undefined;
  /** The stored state as of the last load; undefined before the first one, and after a load failed. */
  #catalog: ModelCatalog | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
    deps.models.onRefused((id, features) => {
      this.addUnsupported(id, features).catch((error) =>
        log("models").warn("cannot store which features model {id} does not support: {error}", { id, error }),
      );
    });
  }

  /** Returns all providers and models that are not deleted, oldest first. */
  async list(): Promise<ProvidersAndModels> {
    const { store } = this.#deps;
    return { providers: await store.all(listModelProviders()), models: await store.all(listModelConfigs()) };
  }

  /** Loads the stored providers and models. Called before the first turn. */
  load(): Promise<void> {
    this.#loading ??= this.#serialize(() => {
      this.#loading = undefined;
      return this.#applyCatalog();
    });
    return this.#loading;
  }

  /** Reloads after another node has, or may have, changed something. Never rejects. */
  loadSoon(): void {
    this.load().catch((error) =>
      log("models").warn("cannot reload the models that another node has changed: {error}", { error }),
    );
  }

  /** Rejects with 400 for a base URL that the server may not call, and with 409 when a provider of this kind has the same name. */
  async addProvider({ api_key, ...fields }: NewProvider): Promise<ModelProviderRow> {
    await this.#checkReachable(fields.base_url);
    return this.#serialize(async () => {
      const now = this.#deps.clock.now();
      const id = uuid();
      const row = { id, ...fields, sealed_api_key: this.#seal(id, api_key), created_at: now, updated_at: now };
      await this.#write([insertModelProvider(row), auditProvider(row, "create", { after: row }, now)], PROVIDER_EXISTS);
      return { ...row, deleted: false };
    });
  }

  /**
   * Rejects with 400 like `addProvider`, 404 or 409. `heir` becomes the default model if the current one gets disabled. If the base URL
   * changes to another host, rejects with 400 unless the key is set again, because a key is only sent to the host for which it was
   * entered (rule MO-5).
   */
  async changeProvider(id: string, { api_key, ...patch }: ProviderPatch, heir?: string): Promise<ModelProviderRow> {
    const before = await this.#requireProvider(id);
    if (patch.base_url !== undefined && patch.base_url !== before.base_url) await this.#checkReachable(patch.base_url);
    return this.#serialize(async () => {
      const row = await this.#requireProvider(id);
      if (row.sealed_api_key !== "" && api_key === undefined && getOrigin(patch.base_url) !== getOrigin(row.base_url)) {
        if (patch.base_url !== undefined) {
          throw new AppError("invalid", "Validation failed.", {
            validations: [{ field: "api_key", detail: "must be set again when the base URL changes to another host" }],
          });
        }
      }
      const sealedKey = api_key === undefined ? {} : { sealed_api_key: this.#seal(id, api_key) };
      const changed = { ...patch, ...sealedKey, updated_at: this.#deps.clock.now() };
      const entry = auditProvider(row, "write", { before: row, after: { ...row, ...changed } }, changed.updated_at);
      const { models } = await this.list();
      const others = models.filter((one) => one.provider_id !== id);
      const promoted =
        patch.enabled === false
          ? promoteHeir(
              models.filter((one) => !others.includes(one)),
              others,
              heir,
            )
          : [];
      const statements = [updateModelProvider(id, changed, { expect: 1 }), ...promoted, entry];
      await this.#write(statements, PROVIDER_EXISTS);
      return { ...row, ...changed };
    });
  }

  /**
   * Rejects with 400 a URL that would be rejected at every call (rule MO-46). Runs outside of the queue, because it resolves DNS
   * names.
   */
  async #checkReachable(base_url: string): Promise<void> {
    const refusal = await this.#deps.models.findUrlRefusal(base_url);
    if (refusal !== undefined) throw invalidField("base_url", refusal);
  }

  /** Returns models with this unsaved model, to test it. */
  draft(provider: ConfiguredProvider, model: ConfiguredModel): LanguageModels {
    return this.#deps.models.draft(provider, model);
  }

  /** Deletes the provider with its models and API key. `heir` becomes the default model if the current one is deleted. Rejects with 404. */
  removeProvider(id: string, heir?: string): Promise<void> {
    return this.#serialize(async () => {
      const row = await this.#requireProvider(id);
      const { models } = await this.list();
      const removed = models.filter((one) => one.provider_id === id);
      const others = models.filter((one) => one.provider_id !== id);
      const now = this.#deps.clock.now();
      await this.#write([
        ...removed.map((one) => updateModelConfig(one.id, { deleted: true, is_default: false, updated_at: now })),
        ...promoteHeir(removed, others, heir),
        updateModelProvider(id, { deleted: true, sealed_api_key: "", updated_at: now }, { expect: 1 }),
        auditProvider(row, "delete", { before: row }, now),
        ...removed.map((one) => auditModel(one, "delete", { before: one }, now)),
      ]);
    });
  }

  /** Rejects with 409 for a model that the provider already has, 412 when the provider is missing or disabled. */
  addModel(fields: NewModel): Promise<ModelConfigRow> {
    return this.#serialize(async () => {
      await this.#requireProvider(fields.provider_id, toUnusableError, true);
      const now = this.#deps.clock.now();
      const row = { ...fields, id: uuid(), created_at: now, updated_at: now, deleted: false };
      const entry = auditModel(row, "create", { after: row }, now);
      await this.#write(
        [...(row.is_default ? [clearDefaultModel({})] : []), insertModelConfig(row), entry],
        MODEL_EXISTS,
      );
      return row;
    });
  }

  /**
   * Rejects with 400 if the default model should no longer be the default: it can only be replaced or disabled. When it is disabled,
   * `heir` becomes the default. Also rejects with 404, 409 or 412.
   */
  changeModel(id: string, patch: ModelPatch, heir?: string): Promise<ModelConfigRow> {
    return this.#serialize(async () => {
      const { models } = await this.list();
      const row = models.find((one) => one.id === id);
      if (!row) throw notFound();
      if (row.is_default && patch.is_default === false) {
        throw new AppError("invalid", "Validation failed.", {
          validations: [{ field: "is_default", detail: "can only be changed by making another model the default" }],
        });
      }
      if (patch.enabled === true) await this.#requireProvider(row.provider_id, toUnusableError, true);
      const others = models.filter((one) => one.id !== id);
      const promoted = patch.enabled === false ? promoteHeir([row], others, heir) : [];
      const defaultPatch = promoted.length > 0 ? { is_default: false } : {};
      const changed = { ...patch, ...defaultPatch, updated_at: this.#deps.clock.now() };
      const becomesDefault = patch.is_default === true && !row.is_default;
      const update = updateModelConfig(id, changed, { expect: 1 });
      const entry = auditModel(row, "write", { before: row, after: { ...row, ...changed } }, changed.updated_at);
      await this.#write([...(becomesDefault ? [clearDefaultModel({})] : []), update, ...promoted, entry], MODEL_EXISTS);
      return { ...row, ...changed };
    });
  }

  /**
   * Omits features that the model's server has rejected from later requests (rule MO-61). Does nothing for a model that no longer exists.
   */
  addUnsupported(id: string, features: readonly ModelFeature[]): Promise<void> {
    return this.#serialize(async () => {
      const { models } = await this.list();
      const row = models.find((one) => one.id === id);
      const { unsupported = [] } = row?.model_config ?? {};
      const added = features.filter((one) => !unsupported.includes(one));
      if (!row || added.length === 0) return;
      log("models").info("model {id} does not support {features}", { id, features: added.join(", ") });
      const model_config = { ...row.model_config, unsupported: [...unsupported, ...added] };
      const changed = { model_config, updated_at: this.#deps.clock.now() };
      const entry = auditModel(row, "write", { before: row, after: { ...row, ...changed } }, changed.updated_at);
      await this.#write([updateModelConfig(id, changed, { expect: 1 }), entry]);
    });
  }

  /** Deletes the model. If it was the default, `heir` becomes the default; without `heir` no model is the default. Rejects with 404. */
  removeModel(id: string, heir?: string): Promise<void> {
    return this.#serialize(async () => {
      const { models } = await this.list();
      const row = models.find((one) => one.id === id);
      if (!row) throw notFound();
      const others = models.filter((one) => one.id !== id);
      const removal = { deleted: true, is_default: false, updated_at: this.#deps.clock.now() };
      const entry = auditModel(row, "delete", { before: row }, removal.updated_at);
      await this.#write([updateModelConfig(id, removal, { expect: 1 }), ...promoteHeir([row], others, heir), entry]);
    });
  }

  /** Replaces the settings of the gateway. Rejects with 400 for a provider that does not exist. */
  changeGateway(after: GatewaySettings): Promise<void> {
    return this.#serialize(async () => {
      const { providers } = await this.list();
      const broken = after.names.flatMap(({ targets }, name): Validation[] =>
        targets.flatMap(({ provider_id }, target) =>
          providers.some(({ id }) => id === provider_id)
            ? []
            : [{ field: `names[${name}].targets[${target}].provider_id`, detail: "is not the ID of a model provider" }],
        ),
      );
      if (broken.length > 0) throw invalid("Validation failed.", broken);
      const before = await readGatewaySettings(this.#deps.store);
      const base = { action: "write", resource_type: "chat_settings", target: "ai_gateway" } as const;
      await this.#write([
        upsertGatewaySettings(after),
        insertAudit({ ...base, now: this.#deps.clock.now(), before, after }),
      ]);
    });
  }

  async #requireProvider(id: string, toError = notFound, mustBeEnabled = false): Promise<ModelProviderRow> {
    const { providers } = await this.list();
    const row = providers.find((one) => one.id === id);
    if (!row || (mustBeEnabled && !row.enabled)) throw toError();
    return row;
  }

  async #write(batch: readonly Statement[], conflictMessage = ""): Promise<void> {
    try {
      await this.#deps.store.commit(batch, { of: "deployment" });
    } catch (error) {
      if (error instanceof CommitError && error.reason === "constraint" && conflictMessage !== "")
        throw conflict(conflictMessage);
      throw error;
    }
    await this.#applyCatalog();
    this.#deps.topics.publish("models_changed", "", {});
    await this.#deps.onChanged?.();
  }

  async #applyCatalog(): Promise<void> {
    // The next caller retries the load.
    this.#catalog = undefined;
    const catalog = await this.#readCatalog();
    this.#catalog = catalog;
    this.#deps.models.replace(catalog.providers, catalog.models);
  }

  /** Returns the gateway settings with all providers and models for callers of models. Keys are decrypted on demand. */
  async catalog(): Promise<ModelCatalog> {
    return this.#catalog ?? this.#readCatalog();
  }

  async #readCatalog(): Promise<ModelCatalog> {
    const { encryption, store } = this.#deps;
    const [settings, { providers, models }] = await Promise.all([readGatewaySettings(store), this.list()]);
    return {
      settings,
      models,
      providers: providers.map(({ id, provider, display_name, base_url, enabled, sealed_api_key }) => ({
        id,
        provider,
        display_name,
        base_url,
        enabled,
        has_api_key: sealed_api_key !== "",
        key: () => (sealed_api_key === "" ? "" : encryption.open(sealed_api_key, toKeyContext(id))),
      })),
    };
  }

  /** Returns the decrypted keys of all providers, without unreadable ones. */
  async keys(): Promise<string[]> {
    const { providers } = await this.list();
    return providers.flatMap(({ id, sealed_api_key }) => {
      try {
        return sealed_api_key === "" ? [] : [this.#deps.encryption.open(sealed_api_key, toKeyContext(id))];
      } catch {
        return [];
      }
    });
  }

  #seal(id: string, key: string): string {
    return key === "" ? "" : this.#deps.encryption.seal(key, toKeyContext(id));
  }
}

const PROVIDER_EXISTS = "A provider of this kind and name already exists.";
const MODEL_EXISTS = "The provider already has this model.";

const toKeyContext = (id: string): string => `model_provider:${id}`;

const toUnusableError = (): AppError => new AppError("precondition_failed", "The provider is missing or disabled.");

const getOrigin = (base_url: string | undefined): string => (base_url ? new URL(base_url).origin : "");

type Action = "create" | "write" | "delete";
type Rows = { readonly before?: object; readonly after?: object };

const auditProvider = (
  { id, display_name, provider }: Pick<ModelProviderRow, "id" | "display_name" | "provider">,
  action: Action,
  rows: Rows,
  now: number,
): Statement =>
  insertAudit({
    now,
    action,
    resource_type: "ai_provider",
    resource_id: id,
    target: display_name || provider,
    ...rows,
  });

const auditModel = (
  { id, display_name, model }: Pick<ModelConfigRow, "id" | "display_name" | "model">,
  action: Action,
  rows: Rows,
  now: number,
): Statement =>
  insertAudit({ now, action, resource_type: "ai_model", resource_id: id, target: display_name || model, ...rows });

/** If the default model is among `removed`, makes `heir` the default, unless `heir` is not among `others` or is disabled. */
const promoteHeir = (
  removed: readonly ModelConfigRow[],
  others: readonly ModelConfigRow[],
  heir: string | undefined,
): Statement[] =>
  removed.some((one) => one.is_default) && others.some((one) => one.id === heir && one.enabled)
    ? [clearDefaultModel({}), updateModelConfig(heir ?? "", { is_default: true })]
    : [];

export type { ModelConfigRow, ModelProviderRow };
