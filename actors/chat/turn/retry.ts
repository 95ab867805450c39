// Schedules retries of failed model calls (facts/chats 5.3). Pure.
import type { ChatError } from "#schema/chats/chat-error.ts";
import type { RetryState } from "../machine/decision.ts";

/** Maximum consecutive retries on the same history. */
export const MAX_RETRIES = 25;
/** Maximum retries after an empty answer (rule MO-38). */
export const MAX_EMPTY_RETRIES = 1;
/**
 * Maximum retries after answers that broke off: each costs as much as a complete one, and repeated failures have a systematic cause
 * (MO-47).
 */
export const MAX_BROKEN_RETRIES = 4;
const FIRST_RETRY_MS = 1_000;
const MAX_WAIT_MS = 60_000;

/** Returns the delay before a retry, in milliseconds; the first retry is 1. It is at least the provider's `retry_after_ms`. */
const retryDelay = (retry: number, retry_after_ms: number): number =>
  Math.max(Math.min(FIRST_RETRY_MS * 2 ** (retry - 1), MAX_WAIT_MS), retry_after_ms);

/** Returns the state to store for this retry. `now` in milliseconds since 1970. */
export const toRetryState = (error: ChatError, attempt: number, retry_after_ms: number, now: number): RetryState => {
  const delay_ms = retryDelay(attempt, retry_after_ms);
  const { message, kind, provider = "", status_code = null } = error;
  return { attempt, delay_ms, error: message, kind, provider, retrying_at: now + delay_ms, status_code };
};
