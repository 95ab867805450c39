// Sends reports about jobs to their actors from outside of any mailbox, and retries while an actor or the store is overloaded, until the
// server stops. Used by the runners of builds, imports and dry runs.
import type { Clock } from "#base/clock.ts";
import { retry } from "#base/retry.ts";
import { ServerStopping } from "../runtime/job-queue.ts";

/** A database is usually unavailable for a shorter time, so the job's result is not lost. */
const RETRY_TIMEOUT_MS = 15 * 60_000;
const RETRY_MS = 250;
const MAX_RETRY_MS = 2_000;

/** Returns true if the job was aborted because the server is stopping. The job stays open on disk, and the next start resumes it. */
export const isServerStopping = (signal: AbortSignal): boolean => signal.reason instanceof ServerStopping;

/** Sends a message with retries for up to 15 minutes. Throws permanent errors immediately. */
export const askWithRetries = <T>(clock: Clock, signal: AbortSignal, ask: () => Promise<T>): Promise<T> => {
  const deadline = clock.monotonic() + RETRY_TIMEOUT_MS;
  return retry(clock, ask, (error, failures) =>
    clock.monotonic() > deadline || isServerStopping(signal) || !isRetryable(error)
      ? undefined
      : Math.min(MAX_RETRY_MS, failures * RETRY_MS),
  );
};

/** Functions that ask a job's owner. `here`: on this node only. `anywhere`: on any node. */
type OwnerRoutes<T> = { readonly here: () => Promise<T>; readonly anywhere: () => Promise<T> };

/**
 * Asks a job's owner to begin the job, with retries. For the built-in worker, asks only on this node. If the job's shard moves, this worker
 * is stopped, so the job must not begin with it on the new node.
 */
export const beginWithRetries = <T>(
  clock: Clock,
  signal: AbortSignal,
  isBuiltIn: boolean,
  { here, anywhere }: OwnerRoutes<T>,
): Promise<T> =>
  askWithRetries(clock, signal, () => {
    if (isServerStopping(signal)) return Promise.reject(signal.reason);
    return isBuiltIn ? here() : anywhere();
  });

/** Returns true for a temporary error. Checks properties, because errors from other nodes are not instances of a class here. */
export const isRetryable = (error: unknown): boolean => {
  const { kind, reason } = error as { kind?: unknown; reason?: unknown };
  return kind === "overloaded" || TEMPORARY_REASONS.has(String(reason));
};

const TEMPORARY_REASONS: ReadonlySet<string> = new Set([
  "overloaded",
  "unreachable",
  "moved",
  "full",
  "unknown",
  "stale",
]);
