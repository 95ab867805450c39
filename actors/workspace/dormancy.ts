// Decides about dormant workspaces (facts/platform 2.6), which are kept but cannot be used. They can only be read, changed, stopped,
// deleted and woken. Pure.
import type { WorkspaceRow } from "#db/workspaces/workspaces.ts";
import { isActive } from "#schema/workspaces/job.ts";
import type { WorkspaceState } from "./decision.ts";
import type { ScheduleRules } from "./schedule-rules.ts";

/** A dormant workspace accepts no SSH, terminal, port or app connection, and the server does not start it. */
export const isDormant = ({ dormant_at }: Pick<WorkspaceRow, "dormant_at">): boolean => dormant_at !== null;

/** Returns the columns that change when the workspace becomes dormant or is woken. */
export const toDormancyPatch = (dormant: boolean, now: number): Partial<WorkspaceRow> =>
  dormant
    ? { dormant_at: now, updated_at: now }
    : { dormant_at: null, deleting_at: null, last_used_at: now, updated_at: now };

/** Returns when a dormant workspace is deleted; null for never. */
export const toDeletionTime = (
  { dormant_at }: Pick<WorkspaceRow, "dormant_at">,
  { time_til_dormant_autodelete_ms }: ScheduleRules,
): number | null =>
  dormant_at === null || time_til_dormant_autodelete_ms <= 0 ? null : dormant_at + time_til_dormant_autodelete_ms;

/** Returns true if any part of the workspace may be running, so that making it dormant requires a stop. */
export const mayBeRunning = ({ build, job }: Pick<WorkspaceState, "build" | "job">): boolean =>
  build.transition === "start" && !isActive(job);
