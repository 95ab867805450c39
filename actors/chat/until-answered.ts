// Retries a message until it is answered, so that an overloaded server or an unconfirmed commit delays a turn's report but never loses it
// (facts/chats 1.5).
import type { Clock } from "#base/clock.ts";
import { toErrorKind } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { retry } from "#base/retry.ts";

const FIRST_RETRY_MS = 250;
const MAX_WAIT_MS = 30_000;

/** Returns the answer, or `stale` once the signal is aborted or the chat no longer exists. */
export const retryUntilAnswered = async <T>(
  clock: Clock,
  signal: AbortSignal,
  ask: () => Promise<T>,
): Promise<T | "stale"> => {
  const isOver = (error: unknown): boolean => signal.aborted || toErrorKind(error) === "not_found";
  const toRetryDelay = (error: unknown, failures: number): number | undefined => {
    if (isOver(error)) return undefined;
    log("chats").warn("a turn retries a message to its chat: {error}", { error });
    return Math.min(FIRST_RETRY_MS * 2 ** Math.min(failures - 1, 30), MAX_WAIT_MS);
  };
  try {
    return await retry(clock, ask, toRetryDelay, signal);
  } catch (error) {
    if (isOver(error)) return "stale";
    throw error;
  }
};
