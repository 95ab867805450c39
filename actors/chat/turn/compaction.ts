// Compacts a turn's history: when it is full, when a model rejects it, or when the chat's owner requests it. Asks the hooks and the model
// outside of the mailbox; the rows are stored as one step of the turn (rules CM-1 to CM-10). Used by turn.ts.
import type { Clock } from "#base/clock.ts";
import { toChatError } from "#src/llm/failure.ts";
import { toEffectRows } from "../hooks/effects.ts";
import type { TurnHooks } from "../hooks/turn-hooks.ts";
import type { NewMessage } from "../machine/decision.ts";
import type { StartedAttempt } from "../messages.ts";
import { type HistoryRow, SUMMARIZED, selectBody } from "../prompt/compact.ts";
import type { Compactor } from "../prompt/compactor.ts";
import { retryUntilAnswered } from "../until-answered.ts";
import type { Reporter } from "./reporter.ts";
import { type PartBatch, StreamBuffer } from "./stream-buffer.ts";

/** The interface to the turn. */
type CompactionHost = {
  readonly chat_id: string;
  readonly clock: Clock;
  readonly hooks: TurnHooks;
  readonly reporter: Reporter;
  readonly publish: (chat_id: string, batch: PartBatch) => void;
  /** Called at the beginning. Discards earlier output of the model; followers see the buffer, if any. */
  readonly begin: (buffer: StreamBuffer | undefined) => void;
};

/** "none": the history and the attempt are unchanged. A number: the history version from which the next attempt continues. */
type CompactionOutcome = "none" | "over" | number;

export class TurnCompaction {
  readonly #host: CompactionHost;
  readonly #compactor: Compactor;

  constructor(host: CompactionHost, compactor: Compactor) {
    this.#host = host;
    this.#compactor = compactor;
  }

  /** Compacts if due; `isForced`: the model rejected the history as too long. A failure does not fail the turn. */
  async compactIfDue(
    attempt: StartedAttempt,
    history: readonly HistoryRow[],
    isForced: boolean,
  ): Promise<CompactionOutcome> {
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
    const then = "continue";
    const reported = await reporter.report("reportStep", { fence: attempt.fence, messages: rows, then });
    return reported === "stale" ? "over" : reported.history_version;
  }

  /** Compacts on the owner's request. The turn ends with it, or fails with it. */
  async compactOnRequest(attempt: StartedAttempt, history: readonly HistoryRow[]): Promise<void> {
    const { clock, reporter } = this.#host;
    const { signal } = reporter;
    const { fence, compaction } = attempt;
    if (!compaction) return;
    const { instructions, context, notice } = compaction;
    const then = "finish";
    if (selectBody(history).length === 0)
      return void (await reporter.report("reportStep", { fence, messages: [], then }));
    try {
      const rows = await this.#summarizeLive(attempt, instructions === "" ? {} : { instructions }, (requested) => {
        const hook_context = [context, requested].filter(Boolean).join("\n\n");
        return this.#compactor.summarize(attempt, history, signal, { source: "manual", hook_context, instructions });
      });
      if (rows === "over" || !rows) return;
      const messages = [...rows, ...toEffectRows({ user_message: notice })];
      await reporter.report("reportStep", { fence, messages, then });
    } catch (error) {
      if (signal.aborted) return;
      await reporter.report("reportFailure", { fence, error: toChatError(error, attempt, clock.now()), messages: [] });
    }
  }

  /** Returns the summary's rows between those of the hooks, and shows the call on the stream. `args` undefined: not shown. */
  async #summarizeLive(
    attempt: StartedAttempt,
    args: object | undefined,
    sum: (hook_context: string) => Promise<readonly NewMessage[] | undefined>,
  ): Promise<readonly NewMessage[] | "over" | undefined> {
    const { chat_id, hooks, publish, begin, reporter } = this.#host;
    begin(undefined);
    const decision = await reporter.askHooks(attempt, [], () => hooks.ask(attempt, "pre_compact"));
    if (!decision) return "over";
    const buffer = args && new StreamBuffer(chat_id, attempt.fence, (batch) => publish(chat_id, batch));
    begin(buffer);
    buffer?.push({ type: "tool-call", tool_call_id: this.#compactor.call_id, tool_name: SUMMARIZED, args });
    try {
      const summary = await sum(decision.model_context ?? "");
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
