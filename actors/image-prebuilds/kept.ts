// Which images a repository prebuild keeps once another one is built, and when it is looked at again. Pure.
import type { KeptImages } from "#db/schema/repository-prebuilds.ts";

const HOUR_MS = 3_600_000;
/** A failed build is tried again without a push after so long, so many times: an engine or a host may have been down. */
const RETRY_MS = 10 * 60_000;
const MAX_TRIES = 3;

/** The images with those just built in front, and the names of images that nothing here needs any more. */
export const withBuilt = (
  kept: readonly KeptImages[],
  built: KeptImages,
  keep: number,
): { readonly images: readonly KeptImages[]; readonly removed: readonly string[] } => {
  const isSame = ({ names }: KeptImages): boolean => names.join() === built.names.join();
  const all = [built, ...kept.filter((one) => !isSame(one))];
  const images = all.slice(0, keep);
  const needed = new Set(images.flatMap(({ names }) => names));
  const dropped = new Set(all.slice(keep).flatMap(({ names }) => names));
  return { images, removed: [...dropped].filter((name) => !needed.has(name)) };
};

type Ended = { readonly interval_hours: number; readonly tries: number };

/** When it is next looked at without a push, milliseconds since 1970; `tries` failed ones in a row. Undefined: not until someone asks. */
export const nextLook = ({ interval_hours, tries }: Ended, now: number): number | undefined => {
  const regular = interval_hours > 0 ? now + interval_hours * HOUR_MS : undefined;
  if (tries === 0 || tries >= MAX_TRIES) return regular;
  return Math.min(now + RETRY_MS * tries, regular ?? Number.POSITIVE_INFINITY);
};
