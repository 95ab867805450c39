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

/** Maximum consecutive retries on the same history. */
const MAX_RETRIES = 25;
/** Maximum retries after an empty answer (rule MO-38). */
const MAX_EMPTY_RETRIES = 1;
/**
 * Maximum retries after answers that broke off: each costs as much as a complete one, and repeated failures have a systematic cause
 * (MO-47).
 */
const MAX_BROKEN_RETRIES = 4;
const FIRST_RETRY_MS = 1_000;
const MAX_BACKOFF_MS = 60_000;

/** Returns the delay before a retry in milliseconds: at least the provider's `retry_after_ms`. The first retry has the number 1. */
const retryDelay = (retry: number, retry_after_ms: number): number =>
  Math.max(Math.min(FIRST_RETRY_MS * 2 ** (retry - 1), MAX_BACKOFF_MS), retry_after_ms);

/** Returns the state to store for this retry. `now` in milliseconds since 1970. */
const toRetryState = (error: ChatError, attempt: number, retry_after_ms: number, now: number): RetryState => {
  const delay_ms = retryDelay(attempt, retry_after_ms);
  const { message, kind, provider = "", status_code = null } = error;
  return { attempt, delay_ms, error: message, kind, provider, retrying_at: now + delay_ms, status_code };
};

type FailedCall = {
  readonly chat_id: string;
  readonly attempt: StartedAttempt;
  readonly failure: unknown;
  /** The content that the answer had so far. */
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
  const wait_ms = failure instanceof ModelError ? failure.retry_after_ms : 0;
  const error = toChatError(failure, attempt, clock.now());
  if (!(failure instanceof ModelError)) {
    log("chats").error("the model of chat {chat_id} failed unexpectedly: {error}", { chat_id, error: failure });
  }
  if (!error.retryable || isOutOfRetries || wait_ms > MAX_WAIT_MS) {
    const messages = toPartialAnswer(content, clock.now(), "The call did not run because the answer was cut off.");
    await reporter.report("reportFailure", { fence, error, messages });
    return undefined;
  }
  const retry = toRetryState(error, tries.failures, wait_ms, clock.now());
  return (await reporter.report("recordRetry", { fence, retry })) === "stale" ? undefined : retry;
};

/** Pauses the turn, then checks the budget again: if it was raised before the pause was stored, that raise found no turn to resume. */
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
