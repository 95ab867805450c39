// Dormant workspaces (facts/platform 2.6): kept but not used; they may be read, changed, stopped, deleted and woken, nothing else.
// Pure.
import type { WorkspaceRow } from "#db/workspaces/workspaces.ts";
import { isActive } from "#schema/workspaces/job.ts";
import type { WorkspaceState } from "./decision.ts";
import type { ScheduleRules } from "./schedule-rules.ts";

/** A dormant workspace takes no ssh, terminal, port or app connection and is not started by the server. */
export const isDormant = ({ dormant_at }: Pick<WorkspaceRow, "dormant_at">): boolean => dormant_at !== null;

/** The columns that change when it falls asleep or is woken. */
export const dormancyPatch = (dormant: boolean, now: number): Partial<WorkspaceRow> =>
  dormant
    ? { dormant_at: now, updated_at: now }
    : { dormant_at: null, deleting_at: null, last_used_at: now, updated_at: now };

/** When a dormant workspace is deleted; null for never. */
export const deletingAt = (
  { dormant_at }: Pick<WorkspaceRow, "dormant_at">,
  { time_til_dormant_autodelete_ms }: ScheduleRules,
): number | null =>
  dormant_at === null || time_til_dormant_autodelete_ms <= 0 ? null : dormant_at + time_til_dormant_autodelete_ms;

/** True when something of it may run, so that falling asleep needs a stop. */
export const mayRun = ({ build, job }: Pick<WorkspaceState, "build" | "job">): boolean =>
  build.transition === "start" && !isActive(job);
