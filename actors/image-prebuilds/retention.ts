// Decides which images a repository prebuild keeps after a new one is built, and when it is checked next. Pure.
import type { CommitImages } from "#db/schema/repository-prebuilds.ts";

const HOUR_MS = 3_600_000;
/** Failed builds are retried at growing intervals, because an engine or a host may have been down. */
const RETRY_MS = 10 * 60_000;
/** After this many consecutive failures, only a push, the schedule or a request starts a build. */
const MAX_TRIES = 3;

/** Returns the kept images, newest first, and the names of images that are no longer needed. */
export const withBuilt = (
  kept: readonly CommitImages[],
  built: CommitImages,
  keep: number,
): { readonly images: readonly CommitImages[]; readonly removed: readonly string[] } => {
  const isSame = ({ names }: CommitImages): boolean => names.join() === built.names.join();
  const all = [built, ...kept.filter((one) => !isSame(one))];
  const images = all.slice(0, keep);
  const needed = new Set(images.flatMap(({ names }) => names));
  const dropped = new Set(all.slice(keep).flatMap(({ names }) => names));
  return { images, removed: [...dropped].filter((name) => !needed.has(name)) };
};

type EndedPrebuild = { readonly interval_hours: number; readonly tries: number };

/** Returns when to check next without a push, in milliseconds since 1970, after `tries` consecutive failures. Undefined: only on request. */
export const nextCheckTime = ({ interval_hours, tries }: EndedPrebuild, now: number): number | undefined => {
  const regular = interval_hours > 0 ? now + interval_hours * HOUR_MS : undefined;
  if (tries === 0 || tries >= MAX_TRIES) return regular;
  return Math.min(now + RETRY_MS * tries, regular ?? Number.POSITIVE_INFINITY);
};
