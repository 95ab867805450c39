// The state of home backups: problems of one workspace, and totals of all. Pure.
import type { HomeStanding } from "#db/workspaces/home-backups.ts";
import { isForBuiltIn } from "#src/provisioners/external/tags.ts";

/** Returns whether the workspace has backups or is scheduled for one. */
export const isCounted = ({ backups, is_scheduled, deleted, failed_at }: HomeStanding): boolean =>
  backups > 0 || (!deleted && (is_scheduled > 0 || Boolean(failed_at)));

/** Describes the problem of a workspace's backups; empty if none exists. */
export const findProblem = (row: HomeStanding, interval: number | undefined, now: number): string => {
  const { last_at, failed_at, damaged, error, deleted, is_scheduled, tags, stopped_at, created_at } = row;
  if (damaged > 0 && !last_at) return `The last backup is damaged: ${error}`;
  if (failed_at && failed_at > (last_at ?? 0)) return `The last backup failed: ${error}`;
  if (deleted || interval === undefined || is_scheduled === 0 || !isForBuiltIn(tags)) return "";
  // A workspace that has not run since its last backup needs no new one.
  if (last_at && stopped_at && stopped_at <= last_at) return "";
  if (now - (last_at || created_at) <= 2 * interval) return "";
  return last_at ? "The last backup is older than twice the interval." : "There is no backup yet.";
};

type StandingFigures = { readonly bytes: number; readonly problems: number; readonly oldest_ms: number };

export const ZERO_FIGURES: StandingFigures = { bytes: 0, problems: 0, oldest_ms: 0 };

/** `oldest_ms`: time of the oldest among the newest backups of existing workspaces; 0 without any. */
export const toFigures = (
  rows: readonly HomeStanding[],
  interval: number | undefined,
  now: number,
): StandingFigures => {
  const counted = rows.filter(isCounted);
  const newest = counted.flatMap(({ last_at, deleted }) => (last_at && !deleted ? [last_at] : []));
  return {
    bytes: counted.reduce((sum, { bytes }) => sum + bytes, 0),
    problems: counted.filter((row) => findProblem(row, interval, now) !== "").length,
    oldest_ms: newest.length === 0 ? 0 : Math.min(...newest),
  };
};
