// Decides when a daemon ends on its own: its folder or token file no longer exists, or its server has been unreachable for too long (rule
// LP-14).
import { statSync } from "node:fs";
import type { Clock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";

export type OrphanOptions = {
  /** Folders and files that the daemon needs; it ends when one of them is removed. */
  readonly paths: readonly string[];
  /** How long the server may be unreachable; undefined for no limit. */
  readonly timeout_ms: number | undefined;
};

export type OrphanDeps = { readonly clock: Clock; readonly signal: AbortSignal; readonly isConnected: () => boolean };

/** `isGone`: the workspace's files no longer exist, so nothing can be saved there. */
export type OrphanReason = { readonly reason: string; readonly isGone: boolean };

const POLL_INTERVAL_MS = 2_000;
const MISSING_IDENTITY = "none";

/** Resolves with the reason to end, or with undefined when the signal fires. */
export const waitUntilOrphaned = async (
  { paths, timeout_ms }: OrphanOptions,
  { clock, signal, isConnected }: OrphanDeps,
): Promise<OrphanReason | undefined> => {
  const identities = new Map(paths.map((path) => [path, readIdentity(path)]));
  let lastConnectedAt = clock.monotonic();
  while (!signal.aborted) {
    // A file that is missing at the start counts as removed, because a later check would find no difference.
    const removed = paths.find(
      (path) => identities.get(path) === MISSING_IDENTITY || readIdentity(path) !== identities.get(path),
    );
    if (removed !== undefined) return { reason: `${removed} was removed`, isGone: true };
    if (isConnected()) lastConnectedAt = clock.monotonic();
    else if (timeout_ms !== undefined && clock.monotonic() - lastConnectedAt >= timeout_ms)
      return { reason: "the server has been unreachable for too long", isGone: false };
    await pause(clock, Math.min(POLL_INTERVAL_MS, timeout_ms ?? POLL_INTERVAL_MS), signal);
  }
  return undefined;
};

/** Identifies a folder by its inode, so that a recreated folder counts as another one. A token file may be replaced. */
const readIdentity = (path: string): string => {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat) return MISSING_IDENTITY;
  return stat.isDirectory() ? `folder ${stat.ino}` : "file";
};
