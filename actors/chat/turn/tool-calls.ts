// Runs the calls of the model's last step, asks the hooks about their results, and stores the results as one step. Used by turn.ts.
import type { Clock } from "#base/clock.ts";
import type { TurnHooks } from "../hooks/turn-hooks.ts";
import type { ReportResult, StartedAttempt } from "../messages.ts";
import type { Reporter } from "./reporter.ts";
import type { StreamBuffer } from "./stream-buffer.ts";
import type { ToolStep } from "./tool-step.ts";

type Calls = {
  readonly attempt: StartedAttempt;
  readonly tools: ToolStep;
  readonly buffer: StreamBuffer;
  /** Whether the turn has made its maximum number of model calls. */
  readonly isLast: boolean;
};
type Deps = { readonly clock: Clock; readonly hooks: TurnHooks; readonly reporter: Reporter };

/** Stores the results and returns the actor's reply; undefined if the turn was stopped or a hook failed before. */
export const runCalls = async (
  { clock, hooks, reporter }: Deps,
  { attempt, tools, buffer, isLast }: Calls,
): Promise<ReportResult | "stale" | undefined> => {
  try {
    await tools.run(reporter.signal);
  } catch (error) {
    if (reporter.signal.aborted) return undefined;
    throw error;
  } finally {
    buffer.close();
  }
  const messages = tools.toMessages(clock.now(), "The call has no result.");
  const continueOrFinish = isLast || tools.endsTurn ? "finish" : "continue";
  const then = attempt.awaits_client ? "act" : continueOrFinish;
  const rows = await reporter.askHooks(attempt, messages, async () => {
    if (tools.failure) throw tools.failure;
    return [
      ...(await hooks.onAnswered(attempt, tools.answered)),
      ...(then === "finish" ? await hooks.askForRows(attempt, "stop") : []),
    ];
  });
  if (!rows) return undefined;
  return reporter.report("reportStep", { fence: attempt.fence, messages: [...messages, ...rows], then });
};
