// Compacts the history during a turn: when the context is nearly full, when a model rejects the history as too long, or when the chat's
// owner requests it. Stores the summary's rows as one step of the turn (rules CM-1 to CM-10). Used by turn.ts.
import type { Clock } from "#base/clock.ts";
import { toChatError } from "#src/llm/failure.ts";
import { toEffectRows } from "../hooks/effects.ts";
import type { TurnHooks } from "../hooks/turn-hooks.ts";
import type { NewMessage } from "../machine/decision.ts";
import type { StartedAttempt } from "../messages.ts";
import { type HistoryRow, SUMMARIZED, selectBody } from "../prompt/compact.ts";
import type { Compactor } from "../prompt/compactor.ts";
import { retryUntilAnswered } from "../until-answered.ts";
import type { HistoryOutcome, Reporter } from "./reporter.ts";
import { type PartBatch, StreamBuffer } from "./stream-buffer.ts";

/** What a compaction needs from its turn. */
type CompactionHost = {
  readonly chat_id: string;
  readonly clock: Clock;
  readonly hooks: TurnHooks;
  readonly reporter: Reporter;
  readonly publish: (chat_id: string, batch: PartBatch) => void;
  /** Discards the model's output so far, and shows this buffer to followers instead, if there is one. */
  readonly begin: (buffer: StreamBuffer | undefined) => void;
};

export class TurnCompaction {
  readonly #host: CompactionHost;
  readonly #compactor: Compactor;

  constructor(host: CompactionHost, compactor: Compactor) {
    this.#host = host;
    this.#compactor = compactor;
  }

  /** Compacts if the context is nearly full. With `isForced`, the model has rejected the history as too long. Never fails the turn. */
  async compactIfDue(
    attempt: StartedAttempt,
    history: readonly HistoryRow[],
    isForced: boolean,
  ): Promise<HistoryOutcome> {
    const { clock, reporter } = this.#host;
    const { signal } = reporter;
    const isWanted = await retryUntilAnswered(clock, signal, () =>
      this.#compactor.isWanted(attempt, history, isForced),
    );
    if (isWanted === "stale") return "over";
    if (!isWanted) return "none";
    const rows = await this.#summarizeLive(attempt, isForced ? undefined : {}, (hook_context) =>
      this.#compactor.rows(attempt, history, signal, hook_context),
    );
    if (rows === "over") return "over";
    if (!rows) return isForced ? "none" : attempt.fence.history_version;
    return reporter.addRows(attempt, rows);
  }

  /** Compacts at the owner's request, and ends the turn. A failure fails the turn. */
  async compactOnRequest(attempt: StartedAttempt, history: readonly HistoryRow[]): Promise<void> {
    const { clock, reporter } = this.#host;
    const { signal } = reporter;
    const { fence, compaction } = attempt;
    if (!compaction) return;
    const { instructions, context, notice } = compaction;
    const finish = (messages: readonly NewMessage[], then = "finish" as const) =>
      reporter.report("reportStep", { fence, messages, then });
    if (selectBody(history).length === 0) return void (await finish([]));
    try {
      const rows = await this.#summarizeLive(attempt, instructions === "" ? {} : { instructions }, (requested) => {
        const hook_context = [context, requested].filter(Boolean).join("\n\n");
        return this.#compactor.summarize(attempt, history, signal, { source: "manual", hook_context, instructions });
      });
      if (rows === "over" || !rows) return;
      await finish([...rows, ...toEffectRows({ user_message: notice })]);
    } catch (error) {
      if (signal.aborted) return;
      await reporter.report("reportFailure", { fence, error: toChatError(error, attempt, clock.now()), messages: [] });
    }
  }

  /**
   * Asks the hooks and summarizes. Returns the rows of the summary, then those of the hooks. Shows the summary to followers as a running
   * call with these `args`, if given.
   */
  async #summarizeLive(
    attempt: StartedAttempt,
    args: object | undefined,
    summarize: (hook_context: string) => Promise<readonly NewMessage[] | undefined>,
  ): Promise<readonly NewMessage[] | "over" | undefined> {
    const { chat_id, hooks, publish, begin, reporter } = this.#host;
    begin(undefined);
    const decision = await reporter.askHooks(attempt, [], () => hooks.ask(attempt, "pre_compact"));
    if (!decision) return "over";
    const buffer = args && new StreamBuffer(chat_id, attempt.fence, (batch) => publish(chat_id, batch));
    begin(buffer);
    buffer?.push({ type: "tool-call", tool_call_id: this.#compactor.call_id, tool_name: SUMMARIZED, args });
    try {
      const summary = await summarize(decision.model_context ?? "");
      if (!summary) return undefined;
      const after = await reporter.askHooks(attempt, [], () => hooks.askForRows(attempt, "post_compact"));
      if (!after) return "over";
      return [...summary, ...toEffectRows({ user_message: decision.user_message ?? "" }), ...after];
    } catch (error) {
      if (reporter.signal.aborted) return "over";
      throw error;
    } finally {
      buffer?.close();
    }
  }
}
