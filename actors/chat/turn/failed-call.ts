// Handles a failed model call: retries it later, or fails the turn. Used by turn.ts (facts/chats 5.3).
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { ChatError } from "#schema/chats/chat-error.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import { MAX_WAIT_MS, toChatError } from "#src/llm/failure.ts";
import { ModelError } from "#src/llm/model.ts";
import type { RetryState } from "../machine/decision.ts";
import type { StartedAttempt } from "../messages.ts";
import { BudgetUsedUp } from "../spending/metered-models.ts";
import { hasBrokenOff, type Tries } from "./ending.ts";
import type { Reporter } from "./reporter.ts";
import { toPartialAnswer } from "./step-end.ts";

/** Maximum consecutive retries. */
const MAX_RETRIES = 25;
/** Maximum retries after an empty answer (rule MO-38). */
const MAX_EMPTY_RETRIES = 1;
/** Maximum retries after answers that broke off, because each costs as much as a complete answer (rule MO-47). */
const MAX_BROKEN_RETRIES = 4;
const FIRST_RETRY_MS = 1_000;
const MAX_BACKOFF_MS = 60_000;

/** Returns the state to store for a retry. The first retry has the number 1. `retry_after_ms` is the delay that the provider requires. */
const toRetryState = (error: ChatError, attempt: number, retry_after_ms: number, now: number): RetryState => {
  const backoff_ms = Math.min(FIRST_RETRY_MS * 2 ** (attempt - 1), MAX_BACKOFF_MS);
  const delay_ms = Math.max(backoff_ms, retry_after_ms);
  const { message, kind, provider = "", status_code = null } = error;
  return { attempt, delay_ms, error: message, kind, provider, retrying_at: now + delay_ms, status_code };
};

type FailedCall = {
  readonly chat_id: string;
  readonly attempt: StartedAttempt;
  readonly failure: unknown;
  /** The content of the answer before the failure. */
  readonly content: readonly MessagePart[];
};
type Deps = { readonly clock: Clock; readonly reporter: Reporter };

/** Counts and reports the failure. Returns the retry to wait for, or undefined when the turn is over. */
export const handleFailure = async (
  { clock, reporter }: Deps,
  { chat_id, attempt, failure, content }: FailedCall,
  tries: Tries,
): Promise<RetryState | undefined> => {
  const { fence } = attempt;
  if (failure instanceof BudgetUsedUp) {
    await pauseTurn(reporter, fence, failure);
    return undefined;
  }
  countFailure(tries, failure, content);
  const isOutOfRetries =
    tries.failures > MAX_RETRIES || tries.empty > MAX_EMPTY_RETRIES || tries.broken > MAX_BROKEN_RETRIES;
  const retry_after_ms = failure instanceof ModelError ? failure.retry_after_ms : 0;
  const error = toChatError(failure, attempt, clock.now());
  if (!(failure instanceof ModelError)) {
    log("chats").error("the model of chat {chat_id} failed unexpectedly: {error}", { chat_id, error: failure });
  }
  if (!error.retryable || isOutOfRetries || retry_after_ms > MAX_WAIT_MS) {
    const messages = toPartialAnswer(content, clock.now(), "The call did not run because the answer was cut off.");
    await reporter.report("reportFailure", { fence, error, messages });
    return undefined;
  }
  const retry = toRetryState(error, tries.failures, retry_after_ms, clock.now());
  return (await reporter.report("recordRetry", { fence, retry })) === "stale" ? undefined : retry;
};

/** Pauses the turn, and resumes it immediately if the budget was raised before the pause was stored. */
export const pauseTurn = async (
  reporter: Reporter,
  fence: StartedAttempt["fence"],
  { pause, isStillUsedUp }: BudgetUsedUp,
): Promise<void> => {
  const paused = await reporter.report("pauseForBudget", { fence, pause, resets_at: Date.parse(pause.resets_at) });
  if (paused === "stale" || (await isStillUsedUp())) return;
  await reporter.report("budgetRaised", { budget_id: pause.budget_id });
};

const countFailure = (tries: Tries, failure: unknown, content: readonly MessagePart[]): void => {
  tries.failures += 1;
  if (failure instanceof ModelError && failure.reason === "empty") tries.empty += 1;
  tries.broken = hasBrokenOff(failure, content) ? tries.broken + 1 : 0;
};
