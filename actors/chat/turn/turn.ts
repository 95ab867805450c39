// One turn of a chat, outside of its mailbox: calls the model, streams its output into the buffer, and reports attempts, steps and ends
// with the history and attempt they belong to. Ends as soon as a report is stale or it is stopped.

import { pause } from "#base/retry.ts";
import type { MemoryHold } from "#base/system/memory-share.ts";
import type { MessageRow } from "#db/chats/messages.ts";
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
import { STEPS, type Tries } from "./ending.ts";
import type { RunningTurn } from "./engine.ts";
import { handleFailure } from "./failed-call.ts";
import { EMPTY_OFFER, type McpOffer } from "./mcp.ts";
import { addMcpTools } from "./mcp-turn.ts";
import { callModel } from "./model-call.ts";
import { Opening } from "./opening.ts";
import { Reporter } from "./reporter.ts";
import { type Slot, type TurnScope, yieldSlot } from "./slot.ts";
import { reportAnswer, toPartialAnswer } from "./step-end.ts";
import { StreamBuffer } from "./stream-buffer.ts";
import { runCalls } from "./tool-calls.ts";
import { ToolStep } from "./tool-step.ts";

/**
 * From this percentage of the context on, the prompt may have been too long: token counts are estimates, and exclude instructions and
 * tools.
 */
const NEAR_LIMIT_PERCENT = 70;
/** Characters per token in code and tool output. */
const CHARS_PER_TOKEN = 3;

/** Returns whether a request was rejected without a known reason and its history is near the model's context limit. */
const isProbablyTooLong = (failure: unknown, history: readonly HistoryRow[], context_limit: number): boolean => {
  if (!(failure instanceof ModelError) || failure.reason !== undefined || failure.retryable) return false;
  const { kind, status_code = 0 } = failure;
  const isUnclear = (kind === "generic" || kind === "config") && [400, 413, 422].includes(status_code);
  if (!isUnclear || context_limit <= 0) return false;
  const characters = history.reduce((sum, { content }) => sum + JSON.stringify(content).length, 0);
  const tokens = Math.max(characters / CHARS_PER_TOKEN, measureFullness(history, context_limit).tokens);
  return tokens >= (context_limit * NEAR_LIMIT_PERCENT) / 100;
};

type NextAction = "none" | "again" | "over";

export class Turn implements RunningTurn {
  readonly #deps: TurnDeps;
  readonly #chat_id: string;
  readonly #abort = new AbortController();
  readonly #reporter: Reporter;
  /** The history version that this turn continues from. */
  history_version: number;
  buffer: StreamBuffer | undefined;
  #collector: Collector | undefined;
  /** The debugging record of the model calls, if enabled. */
  readonly recording: Recording | undefined;
  #tools: ToolStep | undefined;
  #mcp: McpOffer = EMPTY_OFFER;
  readonly #usedIds = new UsedCallIds();
  #history: TurnHistory | undefined;
  /** The memory of the model call that is being prepared or made. */
  #memory: RequestMemory | undefined;
  /** Resolves when the checkpoint of the person's message is stored (rule UN-1). */
  #checkpoint: Promise<void> = Promise.resolve();
  readonly #compaction: TurnCompaction;
  readonly #hooks: TurnHooks;
  readonly #opening: Opening;
  readonly #slot: Slot;
  readonly #isContinued: boolean;
  readonly #retry: RetryState | null;

  constructor(
    deps: TurnDeps,
    { chat_id, history_version, slot }: TurnScope,
    { isResumed = false, retry = null }: TurnStart = {},
  ) {
    this.#slot = slot;
    this.#isContinued = isResumed;
    this.#retry = retry;
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

  /** Runs from the first model call to the last. Rejects only because of a bug. */
  async run(): Promise<void> {
    await this.#waitUntilRetry();
    const tries = { failures: this.#retry?.attempt ?? 0, empty: 0, broken: 0, continued: 0, resumed: 0 };
    let hasGuessed = false;
    for (let step = 1; !this.isStopped; ) {
      const started = await this.#reporter.report("beginAttempt", { history_version: this.history_version });
      if (started !== "stale" && started.compaction) {
        using hold = await this.#takeMemory(started);
        const fullHistory = hold && (await this.#readHistory(started));
        // Awaited here, because the memory is released at the end of the block.
        if (fullHistory) await this.#compaction.compactOnRequest(started, fullHistory);
        return;
      }
      const attempt = started === "stale" || this.isStopped ? undefined : await this.#addTools(started);
      if (!attempt || this.isStopped) return;
      if (attempt.calls.length > 0) {
        if (!(await this.#runTools(attempt, step > STEPS))) return;
        await yieldSlot(this.#slot, this.#abort.signal);
        continue;
      }
      using hold = await this.#takeMemory(attempt);
      const history = hold && (await this.#readHistory(attempt));
      const opened = history && this.#follow(await this.#opening.store(attempt, history));
      if (!history || opened === "over") return;
      if (opened === "again") continue;
      const before = this.#follow(await this.#compaction.compactIfDue(attempt, history, false));
      if (before === "over" || this.isStopped) return;
      if (before === "again") continue;
      this.#startCheckpoint(attempt, history);
      const failure = await this.#call(attempt, history);
      if (this.isStopped) return;
      const isGuess: boolean = !hasGuessed && isProbablyTooLong(failure, history, attempt.context_limit);
      hasGuessed ||= isGuess;
      if (isGuess || (failure instanceof ModelError && failure.reason === "too_long")) {
        const then = this.#follow(await this.#compaction.compactIfDue(attempt, history, true));
        if (then === "over") return;
        if (then === "again") continue;
      }
      hold.release();
      if (failure !== undefined) {
        if (!(await this.#waitForRetry(failure, tries, attempt))) return;
        continue;
      }
      Object.assign(tries, { failures: 0, empty: 0, broken: 0 });
      if (!(await this.#report(attempt, step >= STEPS, tries))) return;
      step += 1;
    }
  }

  /** Waits for the retry that the previous server had scheduled. Capped at the maximum retry delay, because clocks may differ. */
  async #waitUntilRetry(): Promise<void> {
    const { clock } = this.#deps;
    const remainingMs = Math.min((this.#retry?.retrying_at ?? 0) - clock.now(), MAX_WAIT_MS);
    if (remainingMs > 0) await this.#waitWithoutSlot(remainingMs);
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

  /** While tools run: resolves when none of their commands is running anymore. */
  get whenEnded(): Promise<unknown> | undefined {
    return this.#tools?.whenEnded;
  }

  /** Stops the turn immediately, and passes the reason to its tools. */
  stop(reason: Error): void {
    this.#abort.abort(reason);
    this.buffer?.close();
  }

  /** Returns the model's output since the last step as history rows. Calls that did not run get the result that they were interrupted. */
  listPartialMessages(now: number): NewMessage[] {
    const answers = this.#tools?.messages(now, "The call was interrupted.");
    this.#tools = undefined;
    return answers ?? toPartialAnswer(this.#flushContent(now), now, "The call was interrupted.");
  }

  #flushContent(now: number) {
    const content = this.#collector?.content(now) ?? [];
    this.#collector = undefined;
    return content;
  }

  #createBuffer({ fence }: StartedAttempt): StreamBuffer {
    const buffer = new StreamBuffer(this.#chat_id, fence, (batch) => this.#deps.publish(this.#chat_id, batch));
    this.buffer = buffer;
    return buffer;
  }

  /** Makes one model call. Returns undefined when it completed, otherwise why it failed. */
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

  /** Creates the checkpoint while the model starts to answer. No writing tool runs before it is stored. */
  #startCheckpoint({ about }: StartedAttempt, history: readonly MessageRow[]): void {
    const options = { waits: this.#isContinued, signal: this.#abort.signal };
    const creation = createCheckpoint(this.#deps, { ...about, chat_id: this.#chat_id }, history, options);
    this.#checkpoint = Promise.all([this.#checkpoint, creation]).then(() => {});
  }

  /** Runs the calls of the last step and stores their results. Returns false when the turn is over. */
  async #runTools(attempt: StartedAttempt, isLast: boolean): Promise<boolean> {
    // Read-only calls need not wait for the checkpoint.
    if (!attempt.calls.every(({ tool_name }) => isReadOnlyTool(tool_name))) await this.#checkpoint;
    if (this.isStopped) return false;
    const buffer = this.#createBuffer(attempt);
    const tools = new ToolStep(this.#deps, this.#chat_id, { ...attempt, mcp: this.#mcp }, buffer, this.#isContinued);
    this.#tools = tools;
    const deps = { clock: this.#deps.clock, hooks: this.#hooks, reporter: this.#reporter };
    const reported = await runCalls(deps, { attempt, tools, buffer, isLast });
    if (!reported) return false;
    this.#tools = undefined;
    return this.#continueAfter(reported);
  }

  /** Returns false when the turn is over. Otherwise continues from the history version that the actor returned. */
  #continueAfter(reported: ReportResult | "stale"): boolean {
    if (reported === "stale" || !reported.goes_on) return false;
    this.history_version = reported.history_version;
    return true;
  }

  /** Returns the attempt with a parameter for the agent, if there are several, and the MCP tools; undefined once the turn is over. */
  async #addTools(attempt: StartedAttempt): Promise<StartedAttempt | undefined> {
    const offered = await addMcpTools(this.#deps, this.#chat_id, attempt, this.#abort.signal);
    this.#mcp = offered?.offer ?? this.#mcp;
    return offered?.attempt;
  }

  /** Waits for the memory of the history and its attachments, before they are read. Returns undefined once the turn is over. */
  async #takeMemory({ about, chat_key }: StartedAttempt): Promise<MemoryHold | undefined> {
    this.#history ??= new TurnHistory(this.#deps.store, chat_key);
    const history = this.#history;
    const { signal } = this.#abort;
    this.#memory = await takeHistoryMemory(this.#deps, {
      chat_key,
      owner_id: about.owner_id,
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

  /** Returns "again" when the history has changed and the next attempt continues from it. */
  #follow(then: "none" | "over" | number): NextAction {
    if (typeof then !== "number") return then;
    this.history_version = then;
    return "again";
  }

  /** Handles a failed call. Returns false when the turn is over. */
  async #waitForRetry(failure: unknown, tries: Tries, attempt: StartedAttempt): Promise<boolean> {
    const { clock } = this.#deps;
    const content = this.#flushContent(clock.now());
    const failed = { chat_id: this.#chat_id, attempt, failure, content };
    const retry = await handleFailure({ clock, reporter: this.#reporter }, failed, tries);
    if (!retry) return false;
    await this.#waitWithoutSlot(retry.delay_ms);
    return !this.isStopped;
  }

  /** Stores the step. Returns false when the turn is over. */
  async #report(attempt: StartedAttempt, isLast: boolean, tries: Tries): Promise<boolean> {
    const deps = { hooks: this.#hooks, reporter: this.#reporter, agents: this.#deps };
    const collector = this.#collector ?? new Collector();
    const answer = { chat_id: this.#chat_id, attempt, collector, mcp: this.#mcp, now: this.#deps.clock.now(), isLast };
    const reported = await reportAnswer(deps, answer, tries);
    if (!reported) return false;
    // Cleared only now, because an interrupt before the step is stored still needs the output.
    this.#collector = undefined;
    return this.#continueAfter(reported);
  }
}
