// The models as chats use them: what a call may use is reserved before it begins, what it has used is priced and written down before the end of its
// answer is handed on, and a call that a limit forbids is not made (rules SP-1 to SP-6, BU-1 to BU-4). Every call passes here, those beside the turns, too.
import { log } from "#base/log.ts";
import type { LedgerCall, Settlement } from "#db/chats/reservations.ts";
import { findCallPlace } from "#db/chats/spend.ts";
import type { Store } from "#db/engine/store.ts";
import type { BudgetPause } from "#schema/ai/budget.ts";
import { budgetTitle } from "#schema/ai/budget-words.ts";
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
import type { Likely, ModelLedger, OpenCall } from "./ledger.ts";
import type { Reached } from "./limits.ts";
import { loadPause } from "./warnings.ts";

type Deps = { readonly store: Store; readonly ledger: ModelLedger; readonly models: LanguageModels };

/** A model call that a limit forbids; the chat's turn waits for an answer to the question. */
export class BudgetUsedUp extends ModelError {
  readonly pause: BudgetPause;
  /** Looks again; true where that cannot be said. */
  readonly isStillUsedUp: () => Promise<boolean>;

  constructor(pause: BudgetPause, isStillUsedUp: () => Promise<boolean>) {
    const detail = `${budgetTitle(pause)} is used up. It resets at ${pause.resets_at}.`;
    super("usage_limit", detail, { retryable: false, reason: pause.scope === "person" ? "spend_limit" : "budget" });
    this.pause = pause;
    this.isStillUsedUp = isStillUsedUp;
  }
}

/** Calls that are under way may use the rest of a budget up: the next try comes when some of them have ended. */
const HELD_RETRY_MS = 5_000;

/** Bytes of a prompt for each token, about. */
const BYTES_PER_TOKEN = 3;
/** Bytes of an answer for each token, about. */
const BYTES_PER_ANSWER_TOKEN = 4;
const REPORTED = { outcome: "ok", is_estimated: false } as const;
/** Tokens that an answer is expected to have at most, about. */
export const EXPECTED_OUTPUT_TOKENS = 16_384;

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

  /** Throws as the models do; `BudgetUsedUp`; and `generic`, to be tried again, when what was used cannot be read or written down. */
  async *stream(request: ModelRequest): AsyncIterable<ModelEvent> {
    const call = await this.#begin(request);
    let used: ModelUsage | undefined;
    let isSettled = false;
    let isFinished = false;
    let bytes = 0;
    try {
      for await (const event of this.#deps.models.stream(request)) {
        if (event.type === "finish") isFinished = true;
        if (event.type === "finish" && used) {
          isSettled = true;
          await this.#record(call, used);
        }
        if ("delta" in event) bytes += Buffer.byteLength(event.delta);
        if (event.type === "usage") {
          // A provider may report more than once; the last report holds.
          used = this.#priced(request.model_id, event.usage);
          yield { type: "usage", usage: used };
        } else yield event;
      }
    } finally {
      // It broke off, and yet it had said what it used: that it failed is what the caller must know.
      if (!isSettled && used) await this.#record(call, used).catch(() => {});
      else if (!isSettled && !isFinished && bytes > 0) await this.#recordEstimate(call, request, bytes).catch(() => {});
      else if (!isSettled) await this.#deps.ledger.giveUp(call.open);
    }
  }

  /** Throws `BudgetUsedUp` once a limit is reached, and `generic` when that cannot be read or written: then nothing is spent. */
  async #begin(request: ModelRequest): Promise<Call> {
    const { store, ledger } = this.#deps;
    let begun: OpenCall | Reached;
    let row: LedgerCall;
    try {
      row = await this.#ledgerCall(request);
      begun = await ledger.begin(row, () => this.#likely(request), { always: false });
      if ("isHeld" in begun && !begun.isHeld) {
        throw new BudgetUsedUp(await loadPause(store, begun), () => ledger.isStillReached(row));
      }
    } catch (error) {
      if (error instanceof ModelError) throw error;
      log("chats").error("what a model call may use could not be reserved: {error}", { error });
      throw new ModelError("generic", "What has been spent could not be read.", { retryable: true });
    }
    if ("isHeld" in begun) {
      throw new ModelError("rate_limit", "", { reason: "budget_held", retryable: true, retry_after_ms: HELD_RETRY_MS });
    }
    return { open: begun, row };
  }

  async #ledgerCall({ payer, model_id }: ModelRequest): Promise<LedgerCall> {
    const place = await this.#deps.store.get(findCallPlace({ chat: payer.chat_key }));
    return {
      user_id: payer.user_id,
      chat_id: place?.chat_id ?? "",
      root_chat_id: place?.root_chat_id ?? "",
      organization_id: place?.organization_id ?? "",
      template_id: place?.template_id ?? "",
      kind: payer.kind,
      model_config_id: model_id,
      workspace_id: "",
      key_id: "",
      provider_id: "",
      asked_model: "",
      model: "",
    };
  }

  #likely(request: ModelRequest): Likely {
    const input_tokens = estimateInput(request);
    const usage = { input_tokens, output_tokens: EXPECTED_OUTPUT_TOKENS };
    const micros = computeCost(usage, this.#deps.models.price?.(request.model_id)) ?? 0;
    return { micros, tokens: input_tokens + EXPECTED_OUTPUT_TOKENS };
  }

  #priced(model_id: string, usage: ModelUsage): ModelUsage {
    const cost_micros = isCounted(usage) ? computeCost(usage, this.#deps.models.price?.(model_id)) : null;
    return cost_micros === null ? usage : { ...usage, cost_micros };
  }

  /** An answer that ended before its provider said what it used has used its prompt, and what came of the answer. */
  #recordEstimate(call: Call, request: ModelRequest, bytes: number): Promise<void> {
    const usage = { input_tokens: estimateInput(request), output_tokens: Math.ceil(bytes / BYTES_PER_ANSWER_TOKEN) };
    const outcome = request.signal.aborted ? "aborted" : "failed";
    return this.#record(call, this.#priced(request.model_id, usage), { outcome, is_estimated: true });
  }

  async #record(
    { open, row }: Call,
    usage: ModelUsage,
    { outcome, is_estimated }: Pick<Settlement, "outcome" | "is_estimated"> = REPORTED,
  ): Promise<void> {
    if (!isCounted(usage)) return this.#deps.ledger.giveUp(open);
    const settlement: Settlement = {
      outcome,
      input_tokens: usage.input_tokens ?? 0,
      output_tokens: usage.output_tokens ?? 0,
      cache_read_tokens: usage.cache_read_tokens ?? 0,
      cache_creation_tokens: usage.cache_creation_tokens ?? 0,
      cost_micros: usage.cost_micros ?? null,
      is_estimated,
      first_byte_ms: null,
      duration_ms: null,
      provider_request_id: "",
      recording_id: "",
    };
    try {
      await this.#deps.ledger.end(open, row, settlement);
    } catch (error) {
      log("chats").error("what a model call has used could not be stored: {error}", { error });
      throw new ModelError("generic", "What the call has used could not be stored.", { retryable: true });
    }
  }
}

/** A call that runs, and what its row of the ledger says of it. */
type Call = { readonly open: OpenCall; readonly row: LedgerCall };

/** Returns the tokens of a prompt, about. */
const estimateInput = ({ messages, tools }: ModelRequest): number =>
  Math.ceil(Buffer.byteLength(JSON.stringify([messages, tools])) / BYTES_PER_TOKEN);

/** Whether a provider has said anything of tokens. */
const isCounted = ({ input_tokens = 0, output_tokens = 0, ...more }: ModelUsage): boolean =>
  input_tokens + output_tokens + (more.cache_read_tokens ?? 0) + (more.cache_creation_tokens ?? 0) > 0;
