// When a failed model call is tried again (facts/chats 5.3). Pure.
import type { ChatError } from "#schema/chats/chat-error.ts";
import type { RetryState } from "../machine/decision.ts";

/** Tries after the first, in a row on the same history. */
export const RETRIES = 25;
/** Tries after an answer that said nothing (rule MO-38). */
export const EMPTY_RETRIES = 1;
/** Tries after answers that had begun and broke off: each has cost as much as a whole one, and the same again is no accident (MO-47). */
export const BROKEN_RETRIES = 4;
const FIRST_MS = 1_000;
const MAX_WAIT_MS = 60_000;

/** Milliseconds before the retry with this number, counted from 1. What the provider asks for is the least. */
const retryDelay = (retry: number, retry_after_ms: number): number =>
  Math.max(Math.min(FIRST_MS * 2 ** (retry - 1), MAX_WAIT_MS), retry_after_ms);

/** What is stored of the retry with this number; `now` in milliseconds since 1970. */
export const nextTry = (error: ChatError, attempt: number, retry_after_ms: number, now: number): RetryState => {
  const delay_ms = retryDelay(attempt, retry_after_ms);
  const { message, kind, provider = "", status_code = null } = error;
  return { attempt, delay_ms, error: message, kind, provider, retrying_at: now + delay_ms, status_code };
};
