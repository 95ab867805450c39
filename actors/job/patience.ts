// Reporting what came of a job, from outside of any mailbox: what must arrive is said again while the actor or the store is
// overloaded. Used by the runners of builds and imports; a server that stops is not waited for.
import type { Clock } from "#base/clock.ts";
import { retry } from "#base/retry.ts";
import { ServerStopping } from "../runtime/job-queue.ts";

/** A database that is away returns: what a job has done is not thrown away for that. */
const PATIENCE_MS = 15 * 60_000;
const RETRY_MS = 250;
const MAX_RETRY_MS = 2_000;

/** True when the job's work ends because the server stops: on disk it stays open, and the next start takes it up. */
export const stopped = (signal: AbortSignal): boolean => signal.reason instanceof ServerStopping;

/** Asks until it is answered, for a quarter of an hour at the most. Throws what is no passing refusal immediately. */
export const askPatiently = <T>(clock: Clock, signal: AbortSignal, ask: () => Promise<T>): Promise<T> => {
  const until = clock.monotonic() + PATIENCE_MS;
  return retry(clock, ask, (error, failures) =>
    clock.monotonic() > until || stopped(signal) || !isPassingRefusal(error)
      ? undefined
      : Math.min(MAX_RETRY_MS, failures * RETRY_MS),
  );
};

/** How a job's owner is asked: on this node, or wherever it is. */
type Ways<T> = { readonly here: () => Promise<T>; readonly anywhere: () => Promise<T> };

/**
 * Asks a job's owner to begin it, patiently. The built-in worker works for its own node alone: a job whose part leaves in the meantime must not begin at
 * the node that gets it, with a worker that was told to end.
 */
export const beginPatiently = <T>(
  clock: Clock,
  signal: AbortSignal,
  isBuiltIn: boolean,
  { here, anywhere }: Ways<T>,
): Promise<T> =>
  askPatiently(clock, signal, () => {
    if (stopped(signal)) return Promise.reject(signal.reason);
    return isBuiltIn ? here() : anywhere();
  });

/** Also of a node elsewhere, whose errors are of no class of this process. */
export const isPassingRefusal = (error: unknown): boolean => {
  const { kind, reason } = error as { kind?: unknown; reason?: unknown };
  return kind === "overloaded" || PASSING.has(String(reason));
};

const PASSING: ReadonlySet<string> = new Set(["overloaded", "unreachable", "moved", "full", "unknown", "stale"]);
