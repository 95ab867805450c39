// Reports job results from outside of any mailbox, and retries while the actor or the store is overloaded. Used by the runners of builds
// and imports. Stops waiting when the server shuts down.
import type { Clock } from "#base/clock.ts";
import { retry } from "#base/retry.ts";
import { ServerStopping } from "../runtime/job-queue.ts";

/** Longer than a database is usually unavailable, so that a job's result is not lost. */
const RETRY_TIMEOUT_MS = 15 * 60_000;
const RETRY_MS = 250;
const MAX_RETRY_MS = 2_000;

/** Returns whether the job was aborted because the server is stopping. It stays open on disk, and the next start resumes it. */
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

/** Asks a job's owner: `here` on this node only, `anywhere` on any node. */
type OwnerRoutes<T> = { readonly here: () => Promise<T>; readonly anywhere: () => Promise<T> };

/**
 * Asks a job's owner to begin it, with retries. For the built-in worker, asks on this node only: if the job's shard moves, the job must not
 * begin on its new node with a worker that was asked to stop.
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

/** Checks properties instead of classes, because errors from other nodes are not instances of this process's classes. */
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
