// One turn of a chat, outside its mailbox: calls the model, streams what it says into the buffer, and reports attempts, steps and
// ends as messages that carry the history and attempt they belong to. Ends as soon as a report is stale or it is stopped.

import { log } from "#base/log.ts";
import { pause } from "#base/retry.ts";
import type { MessageRow } from "#db/chats/messages.ts";
import type { Hooks } from "#src/hooks/hooks.ts";
import { HookFailure } from "#src/hooks/protocol.ts";
import { chatErrorOf, LONGEST_WAIT_MS } from "#src/llm/failure.ts";
import { mended } from "#src/llm/mend.ts";
import { type LanguageModels, ModelError } from "#src/llm/model.ts";
import type { Asks, Messages } from "../../runtime/directory.ts";
import type { EndOfCall, Recorder, Recording } from "../background/recorder.ts";
import type { Begun } from "../effects.ts";
import { hookError, isHookRow } from "../hooks/effects.ts";
import { wordsOnly } from "../hooks/proposals.ts";
import { TurnHooks } from "../hooks/turn-hooks.ts";
import type { NewMessage, RetryState } from "../machine/decision.ts";
import type { StartedAttempt, Step, TurnReports } from "../messages.ts";
import { type CompactionCounts, Compactor } from "../prompt/compactor.ts";
import type { BlockProvider } from "../prompt/prompt.ts";
import { readHistory } from "../prompt/prompt-history.ts";
import { promptOf } from "../prompt/turn-prompt.ts";
import { untilAnswered } from "../until-answered.ts";
import { withAgentChoice } from "./agent-choice.ts";
import { keepFiles } from "./checkpoints.ts";
import { Collector } from "./collector.ts";
import { TurnCompaction } from "./compaction.ts";
import { callsIn, hasBrokenOff, isCutOff, MOST_CONTINUATIONS, problemOf, STEPS, type Tries } from "./ending.ts";
import { type ChatMcp, type McpOffer, NO_MCP } from "./mcp.ts";
import { offerFor, withMcpTools, withServer } from "./mcp-turn.ts";
import { Opening } from "./opening.ts";
import { BROKEN_RETRIES, EMPTY_RETRIES, nextTry, RETRIES } from "./retry.ts";
import { letOthersIn, type Slot, type TurnOf } from "./slot.ts";
import { assistant, endOfStep, resultOf } from "./step-end.ts";
import { type PartBatch, StreamBuffer } from "./stream-buffer.ts";
import type { AgentDeps } from "./tool-agent.ts";
import { ToolStep } from "./tool-step.ts";
import { untilAborted, watchSilence } from "./watch.ts";

export type TurnDeps = AgentDeps & {
  readonly models: LanguageModels;
  readonly chats: () => Asks<TurnReports>;
  readonly mcp: ChatMcp;
  readonly hooks: Hooks;
  readonly publish: (chat_id: string, batch: PartBatch) => void;
  /** What the model is told before the history. */
  readonly blocks: readonly BlockProvider[];
  readonly compactions: CompactionCounts;
  /** Absent: nothing is recorded. */
  readonly recorder?: Recorder | undefined;
};

type Then = "none" | "again" | "over";
export class Turn {
  readonly #parts: TurnDeps;
  readonly #chat_id: string;
  readonly #abort = new AbortController();
  /** The history this turn goes on from. */
  history_version: number;
  buffer: StreamBuffer | undefined;
  #collector: Collector | undefined;
  /** What is kept of the model calls for whoever looks for faults, where it is wanted. */
  readonly recording: Recording | undefined;
  #tools: ToolStep | undefined;
  #mcp: McpOffer = NO_MCP;
  /** The files as they were when the person wrote (rule UN-1). */
  #kept: Promise<void> = Promise.resolve();
  readonly #compaction: TurnCompaction;
  readonly #hooks: TurnHooks;
  readonly #opening: Opening;

  readonly #slot: Slot;
  readonly #goesOn: boolean;
  readonly #retry: RetryState | null;

  constructor(
    parts: TurnDeps,
    { chat_id, history_version, slot }: TurnOf,
    { goesOn = false, retry = null }: Begun = {},
  ) {
    this.#slot = slot;
    this.#goesOn = goesOn;
    this.#retry = retry;
    this.#parts = parts;
    this.#chat_id = chat_id;
    this.history_version = history_version;
    this.recording = parts.recorder?.run("chat_turn");
    this.#hooks = new TurnHooks(parts, chat_id, this.#abort.signal);
    this.#compaction = this.#compactionOf(parts);
    this.#opening = new Opening(parts, this.#hooks, this.#abort.signal);
  }

  #compactionOf(parts: TurnDeps): TurnCompaction {
    const host = {
      chat_id: this.#chat_id,
      clock: parts.clock,
      signal: this.#abort.signal,
      hooks: this.#hooks,
      publish: parts.publish,
      decided: <T>(begun: StartedAttempt, ask: () => Promise<T>) => this.#decided(begun, [], ask),
      report: (step: Step) => this.#ask("reportStep", step),
      fail: (args: Messages<TurnReports>["reportFailure"]["args"]) => this.#ask("reportFailure", args),
      begin: (buffer: StreamBuffer | undefined) => {
        this.#collector = undefined;
        if (buffer) this.buffer = buffer;
      },
    };
    return new TurnCompaction(host, new Compactor(parts, this.#chat_id));
  }

  /** From the first model call to the last; never rejects unless something of ours is broken. */
  async run(): Promise<void> {
    await this.#untilRetry();
    const tries = { failures: this.#retry?.attempt ?? 0, empty: 0, broken: 0, continued: 0 };
    for (let step = 1; !this.isStopped; ) {
      const asked = await this.#ask("beginAttempt", { history_version: this.history_version });
      if (asked !== "stale" && asked.compaction) return this.#compactAsAsked(asked);
      const begun = asked === "stale" || this.isStopped ? undefined : await this.#withMcp(asked);
      if (!begun || this.isStopped) return;
      if (begun.calls.length > 0) {
        if (!(await this.#runTools(begun, step > STEPS))) return;
        await letOthersIn(this.#slot, this.#abort.signal);
        continue;
      }
      const history = await this.#history(begun);
      const opened = history && (await this.#openSession(begun, history));
      if (!history || opened === "over") return;
      if (opened === "again") continue;
      const before = await this.#compact(begun, history, false);
      if (before === "over" || this.isStopped) return;
      if (before === "again") continue;
      this.#keepFiles(begun, history);
      const failure = await this.#call(begun, history);
      if (this.isStopped) return;
      if (failure instanceof ModelError && failure.reason === "too_long") {
        const then = await this.#compact(begun, history, true);
        if (then === "over") return;
        if (then === "again") continue;
      }
      if (failure !== undefined) {
        tries.failures += 1;
        if (failure instanceof ModelError && failure.reason === "empty") tries.empty += 1;
        const said = this.#collector?.content(this.#parts.clock.now()) ?? [];
        tries.broken = hasBrokenOff(failure, said) ? tries.broken + 1 : 0;
        if (!(await this.#afterFailure(failure, tries, begun))) return;
        continue;
      }
      Object.assign(tries, { failures: 0, empty: 0, broken: 0 });
      if (!(await this.#report(begun, step >= STEPS, tries))) return;
      step += 1;
    }
  }

  /** What the server before this one was waiting for. Clocks may differ: never longer than a wait may be. */
  async #untilRetry(): Promise<void> {
    const { clock } = this.#parts;
    const left = Math.min((this.#retry?.retrying_at ?? 0) - clock.now(), LONGEST_WAIT_MS);
    if (left > 0) await this.#rest(left);
  }

  /** Waits without its slot, so that others may talk to their models meanwhile (rule CH-47). */
  async #rest(ms: number): Promise<void> {
    this.#slot.leave();
    await pause(this.#parts.clock, ms, this.#abort.signal);
    if (!this.isStopped) await this.#slot.take(this.#abort.signal);
  }

  get isStopped(): boolean {
    return this.#abort.signal.aborted;
  }

  /** While tools run: resolves when none of their commands runs any more. */
  get commands(): Promise<unknown> | undefined {
    return this.#tools?.commands;
  }

  /** Ends it at once; tools learn the reason. */
  stop(reason: Error): void {
    this.#abort.abort(reason);
    this.buffer?.close();
  }

  /** What the model has said since the last step, as history: calls that were never made are answered as interrupted. */
  partial(now: number): NewMessage[] {
    const answers = this.#tools?.messages(now, "The call was interrupted.");
    this.#tools = undefined;
    return answers ?? this.#saidSoFar(now, "The call was interrupted.");
  }

  /** What the model has said of an answer that has no end; `missing` answers its calls. */
  #saidSoFar(now: number, missing: string): NewMessage[] {
    const content = this.#collector?.content(now) ?? [];
    this.#collector = undefined;
    if (content.length === 0) return [];
    const calls = callsIn(content);
    return [assistant(content, null, null), ...calls.map((call) => resultOf(call, missing, now))];
  }

  /** One model call. Undefined when it came to its end, else why it failed. */
  async #call(begun: StartedAttempt, history: readonly MessageRow[]): Promise<unknown> {
    const { clock, models, publish } = this.#parts;
    const collector = new Collector();
    const buffer = new StreamBuffer(this.#chat_id, begun.fence, (batch) => publish(this.#chat_id, batch));
    this.#collector = collector;
    this.buffer = buffer;
    const silence = new AbortController();
    const signal = AbortSignal.any([this.#abort.signal, silence.signal]);
    const watch = watchSilence(clock, () => silence.abort(SILENT));
    let ended: EndOfCall | undefined;
    const over = (failure: unknown): unknown => {
      ended?.({ collector, failure, isStopped: this.isStopped });
      return failure;
    };
    try {
      const messages = await promptOf(this.#parts, { ...begun, chat_id: this.#chat_id }, history, signal);
      const { model_id, reasoning_effort, tools, provider_tools } = begun;
      const attempt = begun.fence.generation_attempt;
      const payer = { user_id: begun.about.owner_id, chat_key: begun.chat_key, kind: "chat_turn" } as const;
      const request = { payer, model_id, messages, tools, provider_tools, reasoning_effort, attempt, signal };
      ended = await this.recording?.call(begun, request);
      for await (const event of untilAborted(models.stream(request)[Symbol.asyncIterator](), signal)) {
        watch.heard();
        for (const part of collector.add(mended(event, tools), clock.now())) buffer.push(withServer(part, this.#mcp));
      }
      return over(problemOf(collector.content(clock.now()), collector.finish));
    } catch (error) {
      return over(silence.signal.aborted ? SILENT : error);
    } finally {
      watch.cancel();
      buffer.close();
    }
  }

  /** Beside the model's first words: no tool runs before it is done. */
  #keepFiles({ about }: StartedAttempt, history: readonly MessageRow[]): void {
    const last = history.findLast((row) => !isHookRow(row));
    if (last?.role !== "user" || last.replayed !== null || last.visibility === "model") return;
    const of = { ...about, chat_id: this.#chat_id };
    this.#kept = keepFiles(this.#parts, of, last.id, { waits: this.#goesOn, signal: this.#abort.signal });
  }

  /** Runs the calls of the last step and stores their answers. False when the turn is over. */
  async #runTools(begun: StartedAttempt, isLast: boolean): Promise<boolean> {
    const { clock, publish } = this.#parts;
    await this.#kept;
    if (this.isStopped) return false;
    const buffer = new StreamBuffer(this.#chat_id, begun.fence, (batch) => publish(this.#chat_id, batch));
    const tools = new ToolStep(this.#parts, this.#chat_id, { ...begun, mcp: this.#mcp }, buffer, this.#goesOn);
    this.buffer = buffer;
    this.#tools = tools;
    try {
      await tools.run(this.#abort.signal);
    } catch (error) {
      if (this.isStopped) return false;
      throw error;
    } finally {
      buffer.close();
    }
    const messages = tools.messages(clock.now(), "The call has no result.");
    const then = begun.awaits_client ? "act" : isLast || tools.endsTurn ? "finish" : "continue";
    const rows = await this.#decided(begun, messages, async () => {
      if (tools.failure) throw tools.failure;
      return [
        ...(await this.#hooks.answered(begun, tools.answered)),
        ...(then === "finish" ? await this.#hooks.rows(begun, "stop") : []),
      ];
    });
    if (!rows) return false;
    const reported = await this.#ask("reportStep", { fence: begun.fence, messages: [...messages, ...rows], then });
    this.#tools = undefined;
    if (reported === "stale" || !reported.goes_on) return false;
    this.history_version = reported.history_version;
    return true;
  }

  /**
   * What hooks have decided; undefined once the turn is over: it was stopped, or there was no valid decision. Then it has failed, with
   * `said` in the history.
   */
  async #decided<T>(
    { fence }: StartedAttempt,
    said: readonly NewMessage[],
    ask: () => Promise<T>,
  ): Promise<T | undefined> {
    try {
      return await ask();
    } catch (error) {
      if (this.isStopped) return undefined;
      if (!(error instanceof HookFailure)) throw error;
      const then = "fail";
      await this.#ask("reportStep", { fence, messages: said, then, error: hookError(error) });
      return undefined;
    }
  }

  /** Stores what stands before the turn's first words. "again": the history has more now, and the next attempt goes on from it. */
  async #openSession(begun: StartedAttempt, history: readonly MessageRow[]): Promise<Then> {
    const messages = await this.#decided(begun, [], () => this.#opening.rows(begun, history));
    if (!messages) return "over";
    if (messages.length === 0) return "none";
    const then = "continue";
    const reported = await this.#ask("reportStep", { fence: begun.fence, messages, then });
    if (reported === "stale") return "over";
    this.history_version = reported.history_version;
    return "again";
  }

  /** The attempt with the choice of agents and the tools of MCP servers; undefined once the turn is over. */
  async #withMcp(begun: StartedAttempt): Promise<StartedAttempt | undefined> {
    const { clock, store, mcp } = this.#parts;
    const { signal } = this.#abort;
    const offer = await untilAnswered(clock, signal, () => offerFor(mcp, this.#chat_id, begun, signal));
    if (offer === "stale") return undefined;
    this.#mcp = offer;
    const chosen = await untilAnswered(clock, signal, () => withAgentChoice(store, begun));
    return chosen === "stale" ? undefined : withMcpTools(chosen, offer);
  }

  /** Undefined once the turn is over. */
  async #history({ chat_key }: StartedAttempt): Promise<readonly MessageRow[] | undefined> {
    const { clock, store } = this.#parts;
    const rows = await untilAnswered(clock, this.#abort.signal, () => readHistory(store, chat_key));
    return rows === "stale" ? undefined : rows;
  }

  async #compactAsAsked(begun: StartedAttempt): Promise<void> {
    const history = await this.#history(begun);
    if (history) await this.#compaction.asked(begun, history);
  }

  /** Makes the history shorter where that is due. "none": it is as it was, and so is the attempt; "again": the next attempt decides. */
  async #compact(begun: StartedAttempt, history: readonly MessageRow[], isForced: boolean): Promise<Then> {
    const then = await this.#compaction.whereDue(begun, history, isForced);
    if (typeof then !== "number") return then;
    this.history_version = then;
    return "again";
  }

  /** False when the turn is over. */
  async #afterFailure(failure: unknown, tries: Tries, begun: StartedAttempt): Promise<boolean> {
    const { clock } = this.#parts;
    const { fence } = begun;
    const { failures } = tries;
    const isLast = failures > RETRIES || tries.empty > EMPTY_RETRIES || tries.broken > BROKEN_RETRIES;
    const wait_ms = failure instanceof ModelError ? failure.retry_after_ms : 0;
    const error = chatErrorOf(failure, begun, clock.now());
    if (!(failure instanceof ModelError)) {
      log("chats").error("the model of chat {chat_id} broke: {error}", { chat_id: this.#chat_id, error: failure });
    }
    if (!error.retryable || isLast || wait_ms > LONGEST_WAIT_MS) {
      const messages = this.#saidSoFar(clock.now(), "The call was not run: the answer broke off.");
      await this.#ask("reportFailure", { fence, error, messages });
      return false;
    }
    this.#collector = undefined;
    const retry = nextTry(error, failures, wait_ms, clock.now());
    if ((await this.#ask("recordRetry", { fence, retry })) === "stale") return false;
    await this.#rest(retry.delay_ms);
    return !this.isStopped;
  }

  /** Stores the step. False when the turn is over. */
  async #report(begun: StartedAttempt, isLast: boolean, tries: Tries): Promise<boolean> {
    const { fence, model_id } = begun;
    const now = this.#parts.clock.now();
    const said = (this.#collector?.content(now) ?? []).map((part) => withServer(part, this.#mcp));
    const usage = this.#collector?.usage ?? null;
    const inputs = this.#collector?.inputs ?? new Map();
    const isCut = isCutOff(said, this.#collector?.finish);
    const isContinued = isCut && !isLast && tries.continued < MOST_CONTINUATIONS;
    tries.continued = isContinued ? tries.continued + 1 : 0;
    const words = wordsOnly(said);
    const kept = words.length === 0 ? [] : [assistant(words, usage, model_id)];
    const proposed = await this.#decided(begun, kept, () => this.#hooks.propose(begun, said, inputs));
    if (!proposed) return false;
    const isFiltered = this.#collector?.finish === "content_filter";
    const how = { usage, now, isLast, isCut, isContinued, isFiltered, mcp: this.#mcp };
    const { messages, then } = endOfStep(begun, proposed, how);
    const all = [...messages, ...proposed.rows];
    const ended = then === "finish" ? await this.#decided(begun, all, () => this.#hooks.rows(begun, "stop")) : [];
    if (!ended) return false;
    const reported = await this.#ask("reportStep", { fence, messages: [...all, ...ended], then });
    // Only now: whoever interrupts before this is stored must still find what was said.
    this.#collector = undefined;
    if (reported === "stale" || !reported.goes_on) return false;
    this.history_version = reported.history_version;
    return true;
  }

  #ask<K extends keyof Messages<TurnReports>>(
    message: K,
    args: Messages<TurnReports>[K]["args"],
  ): Promise<Messages<TurnReports>[K]["reply"] | "stale"> {
    const { clock, chats } = this.#parts;
    return untilAnswered(clock, this.#abort.signal, () => chats().ask(this.#chat_id, message, args));
  }
}

const SILENT = new ModelError("stream_silence_timeout", "Nothing came for a long time.");
