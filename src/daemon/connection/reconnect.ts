// Keeps something connected to the server: reconnects with a backoff that grows while attempts fail (rule DM-2). Shared by the connection
// for calls and the tunnel.
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { Random } from "#base/random.ts";
import { backoff, pause } from "#base/retry.ts";
import { TokenRefused } from "./dial.ts";

const MAX_BACKOFF_MS = 10_000;
// A rejected token usually stays rejected, but a corrected clock or a restored backup can make it valid again.
const MAX_REFUSED_BACKOFF_MS = 60_000;
/** A build may not yet have reported the token that it created; until then the server does not know it. */
const MAX_UNKNOWN_BACKOFF_MS = 2_000;
/** Number of attempts, which take about ten minutes. */
const MAX_UNKNOWN_ATTEMPTS = 400;
const FAST_RETRY_MS = 500;
/** A connection that lived this long resets the backoff. */
const STABLE_AFTER_MS = 1_000;

export type ReconnectOptions = {
  /** The log message when a connection fails or ends, such as "not connected". */
  failure: string;
  clock: Clock;
  random: Random;
  signal: AbortSignal;
  /** Fires when little time is left. The next attempt is then made immediately, and further attempts every half second. */
  hurry?: AbortSignal;
  /** Handles one connection from dialing to its end and returns the reason it ended. Never rejects. */
  once(): Promise<Error>;
};

/** Resolves after the signal has fired; never rejects. */
export const reconnect = async ({
  failure: message,
  clock,
  random,
  signal,
  hurry,
  once,
}: ReconnectOptions): Promise<void> => {
  let wasAccepted = false;
  for (let failures = 0; !signal.aborted; failures += 1) {
    const startedAt = clock.monotonic();
    const error = await once();
    if (signal.aborted) return;
    if (clock.monotonic() - startedAt >= STABLE_AFTER_MS && !(error instanceof TokenRefused)) failures = 0;
    const wasRefused = error instanceof TokenRefused;
    wasAccepted ||= !wasRefused && clock.monotonic() - startedAt >= STABLE_AFTER_MS;
    const mayBecomeKnown = !wasAccepted && failures < MAX_UNKNOWN_ATTEMPTS;
    const ceiling = wasRefused ? (mayBecomeKnown ? MAX_UNKNOWN_BACKOFF_MS : MAX_REFUSED_BACKOFF_MS) : MAX_BACKOFF_MS;
    const delay_ms = backoff(failures, hurry?.aborted ? FAST_RETRY_MS : ceiling, random);
    log("daemon").warn(`${message}, trying again in {wait} ms: {reason}`, { wait: delay_ms, reason: error.message });
    await pause(clock, delay_ms, hurry && !hurry.aborted ? AbortSignal.any([signal, hurry]) : signal);
  }
};
