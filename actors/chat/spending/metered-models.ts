// The models as chats use them: reserves a call's estimated usage before it begins, prices and records its actual usage before passing on
// the end of its answer, and blocks calls over a limit (rules SP-1 to SP-6, BU-1 to BU-4) or of owners who may not begin a turn (rule
// CH-51). Calls wait for memory that they have not reserved yet (rule CH-54). Every call goes through here, including calls outside of
// turns.
import { log } from "#base/log.ts";
import type { MemoryHold, MemoryShare } from "#base/system/memory-share.ts";
import type { LedgerCall, Settlement } from "#db/chats/reservations.ts";
import { findLedgerFields } from "#db/chats/spend.ts";
import type { Store } from "#db/engine/store.ts";
import type { BudgetPause } from "#schema/ai/budget.ts";
import { formatBudgetTitle } from "#schema/ai/budget-words.ts";
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
import { costsMoney } from "#src/llm/prices.ts";
import { untilAborted } from "../turn/watch.ts";
import type { ModelLedger, OpenCall, UsageEstimate } from "./ledger.ts";
import type { ReachedLimit } from "./limits.ts";
import type { OpenAnswer } from "./open-answers.ts";
import { loadPause } from "./warnings.ts";

type Deps = {
  readonly store: Store;
  readonly ledger: ModelLedger;
  readonly models: LanguageModels;
  /** The memory for requests. */
  readonly memory: MemoryShare;
  /** Returns why the owner of this chat may not use models now. */
  readonly findOwnerRefusal: (chat_id: string) => Promise<string | undefined>;
};

/** A model call that a limit blocks. The chat's turn asks whether to continue. */
export class BudgetUsedUp extends ModelError {
  readonly pause: BudgetPause;
  /** Checks the limit again. Resolves to true if the check fails. */
  readonly isStillUsedUp: () => Promise<boolean>;

  constructor(pause: BudgetPause, isStillUsedUp: () => Promise<boolean>) {
    const detail = `${formatBudgetTitle(pause)} is used up. It resets at ${pause.resets_at}.`;
    super("usage_limit", detail, { retryable: false, reason: pause.scope === "person" ? "spend_limit" : "budget" });
    this.pause = pause;
    this.isStillUsedUp = isStillUsedUp;
  }
}

/** Delay before a retry when running calls have reserved the remaining budget. Some of them may end within this time. */
const RESERVED_RETRY_MS = 5_000;

/** Approximate bytes of a prompt per token. */
const BYTES_PER_TOKEN = 3;
/** Approximate bytes of an answer per token. */
const BYTES_PER_ANSWER_TOKEN = 4;
/** Approximate maximum tokens of an answer, used for reservations. */
export const EXPECTED_OUTPUT_TOKENS = 16_384;

export class MeteredModels implements LanguageModels {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  resolve(id: string | null): ModelInfo | undefined {
    return this.#deps.models.resolve(id);
  }

  resolveSideModel(id: string): ModelInfo | undefined {
    return this.#deps.models.resolveSideModel?.(id);
  }

  findModelPrice(id: string): ModelPrice | undefined {
    return this.#deps.models.findModelPrice?.(id) as ModelPrice | undefined;
  }

  /**
   * Throws the errors of the models, `BudgetUsedUp`, or a retryable `generic` error when usage cannot be read or written. If the caller
   * stops early, the call is settled in the background.
   */
  async *stream(request: ModelRequest): AsyncIterable<ModelEvent> {
    const call = await this.#open(request);
    const { hungUp: signal } = call.answer;
    const reading = new AnswerReader((onSend) => this.#deps.models.stream({ ...request, signal, onSend }));
    try {
      for await (const event of untilAborted(reading, request.signal)) {
        if (event.type === "finish" && reading.used) {
          reading.isSettled = true;
          await this.#record(call, this.#addCost(request.model_id, reading.used), "ok");
        }
        yield event.type === "usage" ? { type: "usage", usage: this.#addCost(request.model_id, event.usage) } : event;
      }
    } finally {
      // The answer broke off after its usage was reported. The caller must see that failure, not one of recording it.
      if (reading.isOver || reading.isSettled) await this.#settle(call, reading);
      else void this.#drain(call, reading);
    }
  }

  /** Begins a call once the memory for its request is available. Throws the signal's reason while it waits. */
  async #open(request: ModelRequest): Promise<Call> {
    const { memory: share, ledger } = this.#deps;
    const { payer, signal } = request;
    const memory = request.memory?.hold.keep() ?? (await share.take(payer.user_id, measureRequest(request), signal));
    try {
      const opened = await this.#begin(request);
      return { ...opened, request, memory, answer: ledger.answers.open(payer.user_id) };
    } catch (error) {
      memory.release();
      throw error;
    }
  }

  /**
   * After the caller has stopped, reads a paid answer to its end to learn its usage. Closes the connection if nothing was sent, or if the
   * server itself has given up the call.
   */
  async #drain(call: Call, reading: AnswerReader): Promise<void> {
    const { answer, request } = call;
    const isGivenUp = request.signal.reason instanceof ModelError;
    if (isGivenUp || !reading.isBegun || !this.#isPaid(request.model_id)) answer.hangUp();
    else answer.leave(request.signal.reason);
    try {
      for await (const event of untilAborted(reading, answer.hungUp)) answer.count(getTextSize(event));
    } catch {
      // The call is settled by the part that was read.
    }
    await this.#settle(call, reading);
  }

  /** Records what the call has used, or releases its reservation. Never rejects. */
  async #settle(call: Call, reading: AnswerReader): Promise<void> {
    const { answer, memory, open } = call;
    const { used, isSettled, isFinished, text_bytes } = reading;
    try {
      if (isSettled) return;
      if (used)
        await this.#record(
          call,
          this.#addCost(call.request.model_id, used),
          answer.callerLeft.aborted ? "aborted" : "ok",
        );
      else if (answer.isCutShort) await this.#recordEstimate(call, text_bytes, EXPECTED_OUTPUT_TOKENS);
      else if (!isFinished && text_bytes > 0) await this.#recordEstimate(call, text_bytes);
      else await this.#deps.ledger.releaseReservation(open);
    } catch {
      // The error was logged. The reservation expires and is settled at the reserved amount.
    } finally {
      answer.end();
      reading.close();
      memory.release();
    }
  }

  /**
   * Throws `BudgetUsedUp` when a limit is reached, and `generic` when the chat's owner may not use models or limits cannot be read or
   * written; then nothing is spent.
   */
  async #begin(request: ModelRequest): Promise<Pick<Call, "open" | "row">> {
    const { store, ledger } = this.#deps;
    let started: OpenCall | ReachedLimit;
    let row: LedgerCall;
    try {
      row = await this.#buildLedgerCall(request);
      const refusal = row.chat_id === "" ? undefined : await this.#deps.findOwnerRefusal(row.chat_id);
      if (refusal !== undefined)
        throw new ModelError("generic", refusal, { retryable: false, reason: "owner_refused" });
      started = await ledger.begin(row, () => this.#estimateUsage(request), { always: false });
      if ("isReserved" in started && !started.isReserved) {
        throw new BudgetUsedUp(await loadPause(store, started), () => ledger.isStillReached(row));
      }
    } catch (error) {
      if (error instanceof ModelError) throw error;
      log("chats").error("failed to reserve the budget of a model call: {error}", { error });
      throw new ModelError("generic", "Slipway could not check the spend limits.", { retryable: true });
    }
    if ("isReserved" in started) {
      throw new ModelError("rate_limit", "", {
        reason: "budget_held",
        retryable: true,
        retry_after_ms: RESERVED_RETRY_MS,
      });
    }
    return { open: started, row };
  }

  async #buildLedgerCall({ payer, model_id }: ModelRequest): Promise<LedgerCall> {
    const fields = await this.#deps.store.get(findLedgerFields({ chat: payer.chat_key }));
    return {
      user_id: payer.user_id,
      chat_id: fields?.chat_id ?? "",
      root_chat_id: fields?.root_chat_id ?? "",
      organization_id: fields?.organization_id ?? "",
      template_id: fields?.template_id ?? "",
      kind: payer.kind,
      model_config_id: model_id,
      workspace_id: "",
      key_id: "",
      provider_id: "",
      asked_model: "",
      model: "",
    };
  }

  #estimateUsage(request: ModelRequest): UsageEstimate {
    const input_tokens = estimateInput(request);
    const usage = { input_tokens, output_tokens: EXPECTED_OUTPUT_TOKENS };
    const micros = computeCost(usage, this.#deps.models.findModelPrice?.(request.model_id)) ?? 0;
    return { micros, tokens: input_tokens + EXPECTED_OUTPUT_TOKENS };
  }

  #isPaid(model_id: string): boolean {
    return costsMoney(this.resolve(model_id)?.provider ?? "", this.findModelPrice(model_id));
  }

  #addCost(model_id: string, usage: ModelUsage): ModelUsage {
    const cost_micros = hasTokens(usage) ? computeCost(usage, this.#deps.models.findModelPrice?.(model_id)) : null;
    return cost_micros === null ? usage : { ...usage, cost_micros };
  }

  /**
   * Records an estimate for an answer that ended before its provider reported usage: the prompt, and the part of the answer that arrived,
   * but no less than `min_output_tokens`.
   */
  #recordEstimate(call: Call, text_bytes: number, min_output_tokens = 0): Promise<void> {
    const { request, answer } = call;
    const output_tokens = Math.max(Math.ceil(text_bytes / BYTES_PER_ANSWER_TOKEN), min_output_tokens);
    const usage = { input_tokens: estimateInput(request), output_tokens };
    const outcome = request.signal.aborted || answer.callerLeft.aborted ? "aborted" : "failed";
    return this.#record(call, this.#addCost(request.model_id, usage), outcome, true);
  }

  async #record(
    { open, row }: Pick<Call, "open" | "row">,
    usage: ModelUsage,
    outcome: Settlement["outcome"],
    is_estimated = false,
  ): Promise<void> {
    if (!hasTokens(usage)) return this.#deps.ledger.releaseReservation(open);
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
      log("chats").error("failed to record the usage of a model call: {error}", { error });
      throw new ModelError("generic", "Slipway could not record the usage of the call.", { retryable: true });
    }
  }
}

/** A running call, and its data for the ledger. */
type Call = {
  readonly open: OpenCall;
  readonly row: LedgerCall;
  readonly request: ModelRequest;
  /** Also held while an answer is read to its end after its caller has stopped. */
  readonly memory: MemoryHold;
  readonly answer: OpenAnswer;
};

/** Reads the events of an answer and keeps their totals. Has no `return`, so that the stream stays open when a caller stops reading. */
class AnswerReader implements AsyncIterator<ModelEvent> {
  /** The last report; a provider may report usage more than once. */
  used: ModelUsage | undefined;
  /** Whether the call was recorded before the end of its answer was passed on. */
  isSettled = false;
  isFinished = false;
  isOver = false;
  text_bytes = 0;
  readonly #open: (onSend: () => void) => AsyncIterable<ModelEvent>;
  #events: AsyncIterator<ModelEvent> | undefined;
  #isSent = false;

  constructor(open: (onSend: () => void) => AsyncIterable<ModelEvent>) {
    this.#open = open;
  }

  /** Whether the provider may bill the call. */
  get isBegun(): boolean {
    return this.#isSent || this.text_bytes > 0;
  }

  async next(): Promise<IteratorResult<ModelEvent>> {
    try {
      this.#events ??= this.#open(this.#onSend)[Symbol.asyncIterator]();
      const next = await this.#events.next();
      if (next.done) this.isOver = true;
      else this.#countEvent(next.value);
      return next;
    } catch (error) {
      this.isOver = true;
      throw error;
    }
  }

  close(): void {
    this.#events?.return?.()?.catch?.(() => {});
  }

  readonly #onSend = (): void => {
    this.#isSent = true;
  };

  #countEvent(event: ModelEvent): void {
    this.text_bytes += getTextSize(event);
    if (event.type === "usage") this.used = event.usage;
    if (event.type === "finish") this.isFinished = true;
  }
}

const getTextSize = (event: ModelEvent): number => ("delta" in event ? Buffer.byteLength(event.delta) : 0);

/** Returns the bytes of a request without attachments. */
const measureRequest = ({ messages, tools }: ModelRequest): number =>
  Buffer.byteLength(JSON.stringify([messages, tools]));

/** Estimates the tokens of a prompt. */
const estimateInput = (request: ModelRequest): number => Math.ceil(measureRequest(request) / BYTES_PER_TOKEN);

/** Returns whether the provider reported any tokens. */
const hasTokens = ({ input_tokens = 0, output_tokens = 0, ...cached }: ModelUsage): boolean =>
  input_tokens + output_tokens + (cached.cache_read_tokens ?? 0) + (cached.cache_creation_tokens ?? 0) > 0;
