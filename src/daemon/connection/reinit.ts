// Waits until a prebuilt workspace is claimed (facts/platform 5.4, rules PB-10, PB-11).
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { Random } from "#base/random.ts";
import { backoff, pause } from "#base/retry.ts";
import { ApiError, Client } from "#src/client.ts";

const MAX_BACKOFF_MS = 10_000;

/**
 * Returns true once the workspace has an owner and the claim's build has succeeded, even if that happened before the call. Returns false if
 * the workspace cannot be claimed or the signal has fired. Retries while the server does not answer. Never rejects.
 */
export const awaitClaim = async (options: {
  url: URL;
  token: string;
  clock: Clock;
  random: Random;
  signal: AbortSignal;
}): Promise<boolean> => {
  const { url, token, clock, random, signal } = options;
  const client = new Client(url, token);
  for (let failures = 0; !signal.aborted; failures += 1) {
    try {
      await client.get("/api/v2/workspaceagents/me/reinit?wait=true", { signal });
      return true;
    } catch (error) {
      if (signal.aborted) break;
      if (error instanceof ApiError && error.status === 409) return false;
      log("daemon").debug("cannot wait for an owner: {error}", { error });
    }
    await pause(clock, backoff(failures, MAX_BACKOFF_MS, random), signal);
  }
  return false;
};
