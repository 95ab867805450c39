// Prebuilt workspaces: the built-in account that owns them until they are claimed (facts/platform 2.8), and the preset's settings.
import { matchesCron } from "#base/schedule/cron.ts";
import type { ManifestPreset } from "../templates/manifest.ts";

export const PREBUILDS_USER_ID = "c42fdf75-3097-471c-8c33-fb52454d81c0";
export const PREBUILDS_USERNAME = "prebuilds";

/**
 * Returns the number of workspaces that a preset keeps ready at this time, and after how many milliseconds an unclaimed one is replaced; 0
 * means never.
 */
export const resolvePrebuilds = (
  { prebuilds }: ManifestPreset,
  now?: number,
): { instances: number; ttl_ms: number; is_scheduled: boolean } => {
  if (typeof prebuilds !== "object") return { instances: prebuilds ?? 0, ttl_ms: 0, is_scheduled: false };
  const { schedule, instances, ttl_ms = 0 } = prebuilds;
  if (!schedule || now === undefined) return { instances, ttl_ms, is_scheduled: schedule !== undefined };
  const matching = schedule.entries.filter(({ cron }) => matchesCron(cron, schedule.timezone, now));
  const count = matching.length > 0 ? Math.max(...matching.map((entry) => entry.instances)) : instances;
  return { instances: count, ttl_ms, is_scheduled: true };
};

/** Returns whether the preset has prebuilt workspaces at any time. */
export const hasPrebuilds = (preset: ManifestPreset): boolean => {
  const { instances, is_scheduled } = resolvePrebuilds(preset);
  return instances > 0 || is_scheduled;
};
