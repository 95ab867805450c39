// One turn of a chat with a model, outside of the chat's mailbox: calls the model and its tools in turns, streams the output to followers,
// and reports each step to the chat's actor. Ends when a report is stale or the turn is stopped.

import { pause } from "#base/retry.ts";
import type { MemoryHold } from "#base/system/memory-share.ts";
import type { MessageRow } from "#db/chats/messages.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import { MAX_WAIT_MS } from "#src/llm/failure.ts";
import { ModelError, type RequestMemory } from "#src/llm/model.ts";
import { isReadOnlyTool } from "#src/tools/registry.ts";
import type { Recording } from "../background/recorder.ts";
import type { TurnStart } from "../effects.ts";
import { TurnHooks } from "../hooks/turn-hooks.ts";
import type { NewMessage, RetryState } from "../machine/decision.ts";
import type { ReportResult, StartedAttempt } from "../messages.ts";
import { type HistoryRow, measureFullness } from "../prompt/compact.ts";
import { Compactor } from "../prompt/compactor.ts";
import { takeHistoryMemory } from "../prompt/history-memory.ts";
import { TurnHistory } from "../prompt/prompt-history.ts";
import { retryUntilAnswered } from "../until-answered.ts";
import { UsedCallIds } from "./call-ids.ts";
import { createCheckpoint } from "./checkpoints.ts";
import { Collector } from "./collector.ts";
import { TurnCompaction } from "./compaction.ts";
import type { TurnDeps } from "./deps.ts";
import { MAX_STEPS, type Tries } from "./ending.ts";
import type { RunningTurn } from "./engine.ts";
import { handleFailure } from "./failed-call.ts";
import { EMPTY_OFFER, type McpOffer } from "./mcp.ts";
import { addMcpTools } from "./mcp-turn.ts";
import { callModel } from "./model-call.ts";
import { Opening } from "./opening.ts";
import { type HistoryOutcome, Reporter } from "./reporter.ts";
import { type Slot, type TurnScope, yieldSlot } from "./slot.ts";
import { reportAnswer, toPartialAnswer } from "./step-end.ts";
import { StreamBuffer } from "./stream-buffer.ts";
import { runCalls } from "./tool-calls.ts";
import { ToolStep } from "./tool-step.ts";

/**
 * A history of this size, in percent of the context limit, may be too long: token counts are estimates, and leave out instructions and
 * tools.
 */
const NEAR_LIMIT_PERCENT = 70;
/** An estimate for code and tool output. */
const CHARACTERS_PER_TOKEN = 3;

/** Returns whether a provider has rejected a request for an unclear reason, and the history is near the model's context limit. */
const isProbablyTooLong = (failure: unknown, history: readonly HistoryRow[], context_limit: number): boolean => {
  if (!(failure instanceof ModelError) || failure.reason !== undefined || failure.retryable) return false;
  const { kind, status_code = 0 } = failure;
  const isUnclear = (kind === "generic" || kind === "config") && [400, 413, 422].includes(status_code);
  if (!isUnclear || context_limit <= 0) return false;
  const characters = history.reduce((sum, { content }) => sum + JSON.stringify(content).length, 0);
  const tokens = Math.max(characters / CHARACTERS_PER_TOKEN, measureFullness(history, context_limit).tokens);
  return tokens >= (context_limit * NEAR_LIMIT_PERCENT) / 100;
};

type NextAction = "again" | "over";

export class Turn implements RunningTurn {
  readonly #deps: TurnDeps;
  readonly #chat_id: string;
  readonly #abort = new AbortController();
  readonly #reporter: Reporter;
  history_version: number;
  buffer: StreamBuffer | undefined;
  #collector: Collector | undefined;
  readonly recording: Recording | undefined;
  /** Successful model calls of this turn. */
  #modelCalls = 0;
  readonly #tries: Tries = { failures: 0, empty: 0, broken: 0, continued: 0, resumed: 0 };
  #hasGuessedTooLong = false;
  #tools: ToolStep | undefined;
  #mcp: McpOffer = EMPTY_OFFER;
  readonly #usedIds = new UsedCallIds();
  #history: TurnHistory | undefined;
  /** The memory of the current model call. */
  #memory: RequestMemory | undefined;
  /** Resolves when the checkpoint of the person's message is stored (rule UN-1). */
  #checkpoint: Promise<void> = Promise.resolve();
  readonly #compaction: TurnCompaction;
  readonly #hooks: TurnHooks;
  readonly #opening: Opening;
  readonly #slot: Slot;
  readonly #isResumed: boolean;
  /** The retry that a previous server process had scheduled. */
  readonly #retry: RetryState | null;

  constructor(
    deps: TurnDeps,
    { chat_id, history_version, slot }: TurnScope,
    { isResumed = false, retry = null }: TurnStart = {},
  ) {
    this.#slot = slot;
    this.#isResumed = isResumed;
    this.#retry = retry;
    this.#tries.failures = retry?.attempt ?? 0;
    this.#deps = deps;
    this.#chat_id = chat_id;
    this.history_version = history_version;
    this.recording = deps.recorder?.run("chat_turn");
    this.#reporter = new Reporter(deps, chat_id, this.#abort.signal);
    this.#hooks = new TurnHooks(deps, chat_id, this.#abort.signal);
    this.#opening = new Opening(deps, this.#hooks, this.#reporter);
    const begin = (buffer: StreamBuffer | undefined): void => {
      this.#collector = undefined;
      if (buffer) this.buffer = buffer;
    };
    const { clock, publish } = deps;
    this.#compaction = new TurnCompaction(
      { chat_id, clock, hooks: this.#hooks, reporter: this.#reporter, publish, begin },
      new Compactor(Object.assign({}, deps, { memory: () => this.#memory }), chat_id),
    );
  }

  /** Runs attempts until the turn is over. Rejects only because of a bug. */
  async run(): Promise<void> {
    // Capped at the maximum retry delay, because the previous server process may have had another clock.
    const untilRetryMs = Math.min((this.#retry?.retrying_at ?? 0) - this.#deps.clock.now(), MAX_WAIT_MS);
    if (untilRetryMs > 0) await this.#waitWithoutSlot(untilRetryMs);
    while (!this.isStopped) {
      const started = await this.#reporter.report("beginAttempt", { history_version: this.history_version });
      if (started !== "stale" && started.compaction) return this.#compactOnRequest(started);
      const attempt = started === "stale" || this.isStopped ? undefined : await this.#addTools(started);
      if (!attempt || this.isStopped) return;
      const hasToolCalls = attempt.calls.length > 0;
      const nextAction = await (hasToolCalls ? this.#runTools(attempt) : this.#runModelCall(attempt));
      if (nextAction === "over") return;
      if (hasToolCalls) await yieldSlot(this.#slot, this.#abort.signal);
    }
  }

  async #compactOnRequest(attempt: StartedAttempt): Promise<void> {
    using hold = await this.#takeMemory(attempt);
    const history = hold && (await this.#readHistory(attempt));
    // Awaited here, because the memory is released at the end of the block.
    if (history) await this.#compaction.compactOnRequest(attempt, history);
  }

  /** Compacts the history if necessary, calls the model, and stores its answer. Returns "again" if the turn has another attempt. */
  async #runModelCall(attempt: StartedAttempt): Promise<NextAction> {
    using hold = await this.#takeMemory(attempt);
    const history = hold && (await this.#readHistory(attempt));
    if (!history) return "over";
    const opened = this.#continueFrom(await this.#opening.addRows(attempt, history));
    if (opened !== undefined) return opened;
    const compacted = this.#continueFrom(await this.#compaction.compactIfDue(attempt, history, false));
    if (compacted !== undefined || this.isStopped) return compacted ?? "over";
    this.#startCheckpoint(attempt, history);
    const failure = await this.#call(attempt, history);
    if (this.isStopped) return "over";
    // Guesses once in a turn that the history is too long, because compaction is costly and may not help.
    const isGuess = !this.#hasGuessedTooLong && isProbablyTooLong(failure, history, attempt.context_limit);
    this.#hasGuessedTooLong ||= isGuess;
    if (isGuess || (failure instanceof ModelError && failure.reason === "too_long")) {
      const shortened = this.#continueFrom(await this.#compaction.compactIfDue(attempt, history, true));
      if (shortened !== undefined) return shortened;
    }
    // The wait for a retry must not hold the memory.
    hold.release();
    return failure === undefined ? this.#storeAnswer(attempt) : this.#waitForRetry(failure, attempt);
  }

  /** Waits without a slot, so that other turns can use it (rule CH-47). */
  async #waitWithoutSlot(ms: number): Promise<void> {
    this.#slot.leave();
    await pause(this.#deps.clock, ms, this.#abort.signal);
    if (!this.isStopped) await this.#slot.take(this.#abort.signal);
  }

  get isStopped(): boolean {
    return this.#abort.signal.aborted;
  }

  get whenEnded(): Promise<unknown> | undefined {
    return this.#tools?.whenEnded;
  }

  stop(reason: Error): void {
    this.#abort.abort(reason);
    this.buffer?.close();
  }

  listPartialMessages(now: number): NewMessage[] {
    const results = this.#tools?.toMessages(now, "The call was interrupted.");
    this.#tools = undefined;
    return results ?? toPartialAnswer(this.#takeContent(now), now, "The call was interrupted.");
  }

  /** Returns the content of the model's answer so far, and discards it. */
  #takeContent(now: number): readonly MessagePart[] {
    const content = this.#collector?.content(now) ?? [];
    this.#collector = undefined;
    return content;
  }

  #createBuffer({ fence }: StartedAttempt): StreamBuffer {
    const buffer = new StreamBuffer(this.#chat_id, fence, (batch) => this.#deps.publish(this.#chat_id, batch));
    this.buffer = buffer;
    return buffer;
  }

  /** Calls the model. Returns undefined when the call succeeded, otherwise why it failed. */
  #call(attempt: StartedAttempt, history: readonly MessageRow[]): Promise<unknown> {
    const collector = new Collector();
    const buffer = this.#createBuffer(attempt);
    this.#collector = collector;
    const call = {
      chat_id: this.#chat_id,
      attempt,
      history,
      memory: this.#memory,
      mcp: this.#mcp,
      usedIds: this.#usedIds,
      collector,
      buffer,
      recording: this.recording,
    };
    return callModel(this.#deps, call, this.#abort.signal);
  }

  /** Creates the checkpoint while the model answers. Tools that write wait for it. */
  #startCheckpoint({ chat }: StartedAttempt, history: readonly MessageRow[]): void {
    const options = { waits: this.#isResumed, signal: this.#abort.signal };
    const creation = createCheckpoint(this.#deps, { ...chat, chat_id: this.#chat_id }, history, options);
    this.#checkpoint = Promise.all([this.#checkpoint, creation]).then(() => {});
  }

  /** Runs the calls of the last step and stores their results. */
  async #runTools(attempt: StartedAttempt): Promise<NextAction> {
    if (!attempt.calls.every(({ tool_name }) => isReadOnlyTool(tool_name))) await this.#checkpoint;
    if (this.isStopped) return "over";
    const buffer = this.#createBuffer(attempt);
    const tools = new ToolStep(this.#deps, this.#chat_id, { ...attempt, mcp: this.#mcp }, buffer, this.#isResumed);
    this.#tools = tools;
    const deps = { clock: this.#deps.clock, hooks: this.#hooks, reporter: this.#reporter };
    const reported = await runCalls(deps, { attempt, tools, buffer, isLast: this.#modelCalls >= MAX_STEPS });
    if (!reported) return "over";
    this.#tools = undefined;
    return this.#continueAfter(reported);
  }

  #continueAfter(reported: ReportResult | "stale"): NextAction {
    if (reported === "stale" || !reported.continues) return "over";
    this.history_version = reported.history_version;
    return "again";
  }

  /** See `addMcpTools` of mcp-turn.ts. */
  async #addTools(attempt: StartedAttempt): Promise<StartedAttempt | undefined> {
    const offered = await addMcpTools(this.#deps, this.#chat_id, attempt, this.#abort.signal);
    this.#mcp = offered?.offer ?? this.#mcp;
    return offered?.attempt;
  }

  /** Waits for memory for the history and its attachments, which must not be read before. Returns undefined once the turn is over. */
  async #takeMemory({ chat, chat_key }: StartedAttempt): Promise<MemoryHold | undefined> {
    this.#history ??= new TurnHistory(this.#deps.store, chat_key);
    const history = this.#history;
    const { signal } = this.#abort;
    this.#memory = await takeHistoryMemory(this.#deps, {
      chat_key,
      owner_id: chat.owner_id,
      history,
      hasFiles: true,
      signal,
    });
    return this.#memory?.hold;
  }

  /** Returns undefined once the turn is over. */
  async #readHistory({ chat_key }: StartedAttempt): Promise<readonly MessageRow[] | undefined> {
    const { clock, store } = this.#deps;
    this.#history ??= new TurnHistory(store, chat_key);
    const history = this.#history;
    const rows = await retryUntilAnswered(clock, this.#abort.signal, () => history.read());
    return rows === "stale" ? undefined : rows;
  }

  /** Returns undefined when the history is unchanged, so that the attempt continues. */
  #continueFrom(outcome: HistoryOutcome): NextAction | undefined {
    if (outcome === "none") return undefined;
    if (outcome === "over") return "over";
    this.history_version = outcome;
    return "again";
  }

  /** Handles a failed model call, and waits for its retry. */
  async #waitForRetry(failure: unknown, attempt: StartedAttempt): Promise<NextAction> {
    const { clock } = this.#deps;
    const content = this.#takeContent(clock.now());
    const failed = { chat_id: this.#chat_id, attempt, failure, content };
    const retry = await handleFailure({ clock, reporter: this.#reporter }, failed, this.#tries);
    if (!retry) return "over";
    await this.#waitWithoutSlot(retry.delay_ms);
    return "again";
  }

  /** Stores the model's answer as a step. */
  async #storeAnswer(attempt: StartedAttempt): Promise<NextAction> {
    Object.assign(this.#tries, { failures: 0, empty: 0, broken: 0 });
    this.#modelCalls += 1;
    const deps = { hooks: this.#hooks, reporter: this.#reporter, agents: this.#deps };
    const answer = {
      chat_id: this.#chat_id,
      attempt,
      collector: this.#collector ?? new Collector(),
      mcp: this.#mcp,
      now: this.#deps.clock.now(),
      isLast: this.#modelCalls >= MAX_STEPS,
    };
    const reported = await reportAnswer(deps, answer, this.#tries);
    if (!reported) return "over";
    // Cleared only now, because an interrupt before the step is stored still needs the output.
    this.#collector = undefined;
    return this.#continueAfter(reported);
  }
}
