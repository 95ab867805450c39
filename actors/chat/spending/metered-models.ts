// The models as chats use them: what each call has used is priced and written down before the end of its answer is handed on, and who
// has spent what they may makes none (rules SP-1 to SP-6). Every call passes here, those beside the turns, too.
import { type Clock, rfc3339 } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { besideRequest } from "#base/network/request-part.ts";
import { insertSpend } from "#db/chats/spend.ts";
import type { Store } from "#db/engine/store.ts";
import type { ModelPrice } from "#schema/chats/model-price.ts";
import { computeCost } from "#src/llm/cost.ts";
import {
  type LanguageModels,
  ModelError,
  type ModelEvent,
  type ModelInfo,
  type ModelRequest,
  type ModelUsage,
} from "#src/llm/model.ts";

import { exceededBy } from "./limits.ts";

type Deps = { readonly store: Store; readonly clock: Clock; readonly models: LanguageModels };

export class MeteredModels implements LanguageModels {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  resolve(id: string | null): ModelInfo | undefined {
    return this.#deps.models.resolve(id);
  }

  side(id: string): ModelInfo | undefined {
    return this.#deps.models.side?.(id);
  }

  price(id: string): ModelPrice | undefined {
    return this.#deps.models.price?.(id) as ModelPrice | undefined;
  }

  /** Throws as the models do; `usage_limit`; and `generic`, to be tried again, when what was used cannot be read or written down. */
  async *stream(request: ModelRequest): AsyncIterable<ModelEvent> {
    await this.#check(request.payer.user_id);
    let used: ModelUsage | undefined;
    try {
      for await (const event of this.#deps.models.stream(request)) {
        if (event.type === "finish" && used) {
          const whole = used;
          used = undefined;
          await this.#record(request, whole);
        }
        if (event.type === "usage") {
          // A provider may report more than once; the last report holds.
          used = this.#priced(request.model_id, event.usage);
          yield { type: "usage", usage: used };
        } else yield event;
      }
    } finally {
      // It broke off, and yet it had said what it used: that it failed is what the caller must know.
      if (used) await this.#record(request, used).catch(() => {});
    }
  }

  /** Throws `usage_limit` once the payer has spent what they may, and `generic` when that cannot be read: then nothing is spent. */
  async #check(user_id: string): Promise<void> {
    let exceeded: Awaited<ReturnType<typeof exceededBy>>;
    try {
      exceeded = await exceededBy(this.#deps, user_id);
    } catch (error) {
      log("chats").error("what a user has spent could not be read: {error}", { error });
      throw new ModelError("generic", "What has been spent could not be read.", { retryable: true });
    }
    if (!exceeded) return;
    const detail = `The limit of this ${exceeded.period} begins anew at ${rfc3339(exceeded.to)}.`;
    throw new ModelError("usage_limit", detail, { retryable: false, reason: "spend_limit" });
  }

  #priced(model_id: string, usage: ModelUsage): ModelUsage {
    const cost_micros = isCounted(usage) ? computeCost(usage, this.#deps.models.price?.(model_id)) : null;
    return cost_micros === null ? usage : { ...usage, cost_micros };
  }

  async #record({ payer, model_id }: ModelRequest, usage: ModelUsage): Promise<void> {
    if (!isCounted(usage)) return;
    const { store, clock } = this.#deps;
    const spent = insertSpend({ ...payer, model_config_id: model_id, usage, now: clock.now() });
    try {
      await besideRequest(() => store.commit([spent]));
    } catch (error) {
      log("chats").error("what a model call has used could not be stored: {error}", { error });
      throw new ModelError("generic", "What the call has used could not be stored.", { retryable: true });
    }
  }
}

/** Whether a provider has said anything of tokens. */
const isCounted = ({ input_tokens = 0, output_tokens = 0, ...more }: ModelUsage): boolean =>
  input_tokens + output_tokens + (more.cache_read_tokens ?? 0) + (more.cache_creation_tokens ?? 0) > 0;
