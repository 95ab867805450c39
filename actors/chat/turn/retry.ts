// When a failed model call is tried again (facts/chats 5.3). Pure.

/** Tries after the first, in a row on the same history. */
export const RETRIES = 25;
/** Tries after an answer that said nothing (rule MO-38). */
export const EMPTY_RETRIES = 1;
const FIRST_MS = 1_000;
const LONGEST_MS = 60_000;

/** Milliseconds before the retry with this number, counted from 1. What the provider asks for is the least. */
export const retryDelay = (retry: number, retry_after_ms: number): number =>
  Math.max(Math.min(FIRST_MS * 2 ** (retry - 1), LONGEST_MS), retry_after_ms);
