// How the home backups of workspaces stand: what is wrong with those of one, and figures of all. Pure.
import type { HomeStanding } from "#db/workspaces/home-backups.ts";
import { isForBuiltIn } from "../runtime/job-queue.ts";

/** True for a workspace that has backups, or is to have some by schedule. */
export const isCounted = ({ backups, is_scheduled, deleted, failed_at }: HomeStanding): boolean =>
  backups > 0 || (!deleted && (is_scheduled > 0 || Boolean(failed_at)));

/** What is wrong with the backups of a workspace, in words; empty when nothing is. */
export const findProblem = (row: HomeStanding, interval: number | undefined, now: number): string => {
  const { last_at, failed_at, damaged, error, deleted, is_scheduled, tags, stopped_at, created_at } = row;
  if (damaged > 0 && !last_at) return `The last backup is damaged: ${error}`;
  if (failed_at && failed_at > (last_at ?? 0)) return `The last backup failed: ${error}`;
  if (deleted || interval === undefined || is_scheduled === 0 || !isForBuiltIn(tags)) return "";
  // What has not run since its last backup needs no other.
  if (last_at && stopped_at && stopped_at <= last_at) return "";
  if (now - (last_at || created_at) <= 2 * interval) return "";
  return last_at ? "The last backup is older than twice the interval." : "There is no backup yet.";
};

type StandingFigures = { readonly bytes: number; readonly problems: number; readonly oldest_ms: number };

export const NO_FIGURES: StandingFigures = { bytes: 0, problems: 0, oldest_ms: 0 };

/** `oldest_ms`: when the oldest of the newest backups of living workspaces was made; 0 without any. */
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
