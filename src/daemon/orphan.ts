// Decides when a daemon ends on its own: its folder or token file no longer exists, or its server has been unreachable for too long (rule
// LP-14).
import { statSync } from "node:fs";
import type { Clock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";

export type OrphanOptions = {
  /** Folders and files that the daemon needs; it ends when one of them is removed. */
  readonly paths: readonly string[];
  /** Milliseconds without a connection to the server; undefined waits forever. */
  readonly timeout: number | undefined;
};

export type OrphanDeps = { readonly clock: Clock; readonly signal: AbortSignal; readonly isConnected: () => boolean };

/** `isGone`: the workspace's files no longer exist, so nothing can be saved there. */
export type OrphanReason = { readonly reason: string; readonly isGone: boolean };

const POLL_INTERVAL_MS = 2_000;
const MISSING_IDENTITY = "none";

/** Resolves with the reason to end, or with undefined when the signal fires. */
export const waitUntilOrphaned = async (
  { paths, timeout }: OrphanOptions,
  { clock, signal, isConnected }: OrphanDeps,
): Promise<OrphanReason | undefined> => {
  const known = new Map(paths.map((path) => [path, readIdentity(path)]));
  let lastConnectedAt = clock.monotonic();
  while (!signal.aborted) {
    // A file that is missing at the start counts as removed, because a later check would find no difference.
    const gone = paths.find((path) => known.get(path) === MISSING_IDENTITY || readIdentity(path) !== known.get(path));
    if (gone !== undefined) return { reason: `${gone} was removed`, isGone: true };
    if (isConnected()) lastConnectedAt = clock.monotonic();
    else if (timeout !== undefined && clock.monotonic() - lastConnectedAt >= timeout)
      return { reason: "the server has been unreachable for too long", isGone: false };
    await pause(clock, Math.min(POLL_INTERVAL_MS, timeout ?? POLL_INTERVAL_MS), signal);
  }
  return undefined;
};

/** A recreated folder of the same name is a different one; a token file may be replaced. */
const readIdentity = (path: string): string => {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat) return MISSING_IDENTITY;
  return stat.isDirectory() ? `folder ${stat.ino}` : "file";
};
