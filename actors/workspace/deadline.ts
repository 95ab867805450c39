// Computes the deadlines of a running workspace: the first deadline, the latest one that its template allows, and later deadlines after
// extensions and activity (facts/platform 2.7). All times are in milliseconds since 1970. Pure.
import { toRfc3339 } from "#base/clock.ts";
import { AppError, conflict, invalidField } from "#base/errors.ts";
import { findNextTime, toDayNumber } from "#base/schedule/cron.ts";
import type { BuildRow } from "#db/workspaces/builds.ts";
import type { WorkspaceRow } from "#db/workspaces/workspaces.ts";
import { isActive, toJobStatus } from "#schema/workspaces/job.ts";
import type { WorkspaceState } from "./decision.ts";
import { isUnclaimed, type ScheduleRules } from "./schedule-rules.ts";

const MINUTE_MS = 60_000;
/** Weeks of the autostop requirement are counted from this Monday, 2023-01-02, in days since 1970. */
const WEEK_EPOCH_DAYS = Date.UTC(2023, 0, 2) / (24 * 60 * MINUTE_MS);
export const DEFAULT_QUIET_HOURS = "CRON_TZ=UTC 0 0 * * *";
/** A required stop that is less than LEEWAY_MS minus BUFFER_MS after the start moves to the next required day. */
export const LEEWAY_MS = 120 * MINUTE_MS;
export const BUFFER_MS = 15 * MINUTE_MS;
/** A requested deadline must be at least 30 minutes ahead. One minute less is accepted, because of slow clocks and networks. */
const MIN_AHEAD_MS = 29 * MINUTE_MS;
/** Activity moves a deadline only after 5% of the bump has passed, so that not every keystroke moves it. */
const BUMP_THRESHOLD = 0.95;

type ScheduledWorkspace = Pick<WorkspaceRow, "ttl_ms" | "autostart_schedule" | "owner_id">;
export type Deadlines = Pick<BuildRow, "deadline" | "max_deadline">;

/** Returns how long the workspace runs after a start; null for no limit. The owner may choose this if the template allows it. */
export const toEffectiveTtl = (workspace: ScheduledWorkspace, rules: ScheduleRules): number | null =>
  (rules.allow_user_autostop ? workspace.ttl_ms : rules.default_ttl_ms) || null;

/** Returns the next autostart after `after`; undefined for a workspace without autostart. */
export const findNextAutostart = (
  workspace: ScheduledWorkspace,
  rules: ScheduleRules,
  after: number,
): number | undefined =>
  workspace.autostart_schedule === null || !rules.allow_user_autostart || isUnclaimed(workspace)
    ? undefined
    : findNextTime(workspace.autostart_schedule, after, rules.autostart_requirement_days);

/** Returns the deadlines after a start that succeeded at `endedAt` (rules TI-4 to TI-6). */
export const initialDeadlines = (workspace: ScheduledWorkspace, rules: ScheduleRules, endedAt: number): Deadlines => {
  if (isUnclaimed(workspace)) return { deadline: null, max_deadline: null };
  const max_deadline = computeMaxDeadline(rules, endedAt);
  const ttl = toEffectiveTtl(workspace, rules);
  if (ttl === null) return { deadline: max_deadline, max_deadline };
  return {
    deadline: limitTo(extendOverAutostart(workspace, rules, endedAt, endedAt + ttl, ttl), max_deadline),
    max_deadline,
  };
};

/** Extends a deadline that is later than the next autostart, because the workspace should then run as if that autostart had started it. */
const extendOverAutostart = (
  workspace: ScheduledWorkspace,
  rules: ScheduleRules,
  now: number,
  deadline: number,
  ttl: number,
): number => {
  const next = findNextAutostart(workspace, rules, now);
  return next !== undefined && deadline > next ? next + ttl : deadline;
};

const limitTo = (deadline: number, max: number | null): number => (max === null ? deadline : Math.min(deadline, max));

/**
 * Returns the time of the next stop that the template requires; null if it requires none. This is the first start of the owner's quiet
 * hours on a required day of a required week in the owner's time zone, far enough after `endedAt` (rules TI-6, TI-31).
 */
export const computeMaxDeadline = (rules: ScheduleRules, endedAt: number): number | null => {
  const { autostop_requirement_days: days, quiet_hours_schedule } = rules;
  const schedule = quiet_hours_schedule || DEFAULT_QUIET_HOURS;
  const weeks = Math.max(1, rules.autostop_requirement_weeks);
  // At least one of this many weeks is a required week.
  let remainingTries = (weeks + 1) * days.length;
  // The subtracted millisecond includes a time that is exactly at the leeway.
  let at = findNextTime(schedule, endedAt + LEEWAY_MS - BUFFER_MS - 1, days);
  for (; at !== undefined && remainingTries > 0; remainingTries -= 1) {
    if (Math.floor((toDayNumber(schedule, at) - WEEK_EPOCH_DAYS) / 7) % weeks === 0) return at;
    at = findNextTime(schedule, at, days);
  }
  return null;
};

/** Returns true if the workspace's latest build is a successful start. Only then does it have a deadline that can move. */
export const isRunning = ({ build, job }: Pick<WorkspaceState, "build" | "job">): boolean =>
  build.transition === "start" && toJobStatus(job) === "succeeded";

/** Returns the new deadline after activity at `at`; undefined if the deadline stays (rules TI-10, TI-11). */
export const bumpDeadline = (
  state: Pick<WorkspaceState, "workspace" | "build" | "job">,
  rules: ScheduleRules,
  at: number,
): number | undefined => {
  const { workspace, build } = state;
  const { deadline, max_deadline } = build;
  const ttl = toEffectiveTtl(workspace, rules);
  const bump = rules.activity_bump_ms;
  if (!isRunning(state) || isUnclaimed(workspace) || deadline === null || ttl === null || bump <= 0) return undefined;
  if (deadline - at > bump * BUMP_THRESHOLD) return undefined;
  const next = limitTo(extendOverAutostart(workspace, rules, at, at + bump, ttl), max_deadline);
  return next > deadline ? next : undefined;
};

/**
 * Returns a running workspace's deadlines by the current rules of its template; undefined if they are unchanged (rule TI-28). A new
 * required stop that is in the past or within the next two hours moves to two hours from now, so that it does not surprise people.
 */
export const renewDeadlines = (
  { workspace, build, job }: Pick<WorkspaceState, "workspace" | "build" | "job">,
  rules: ScheduleRules,
  now: number,
): Deadlines | undefined => {
  if (!isRunning({ build, job }) || isUnclaimed(workspace)) return undefined;
  const required = computeMaxDeadline(rules, job.completed_at ?? now);
  const earliest = now + LEEWAY_MS;
  const isTooEarly = required !== null && required < earliest;
  // An earlier stop that was already announced stays.
  const postponed = Math.min(build.max_deadline ?? earliest, earliest);
  const max_deadline = isTooEarly ? postponed : required;
  if (max_deadline === build.max_deadline) return undefined;
  const ownDeadline = toEffectiveTtl(workspace, rules) === null ? null : build.deadline;
  return { deadline: ownDeadline === null ? max_deadline : limitTo(ownDeadline, max_deadline), max_deadline };
};

/** Returns why the deadline cannot be set to this value; undefined if it can (facts/platform 2.7, table "Extend"). */
export const findExtendProblem = (
  { workspace, build, job }: Pick<WorkspaceState, "workspace" | "build" | "job">,
  requested: number,
  now: number,
): AppError | undefined => {
  if (isUnclaimed(workspace)) return conflict("A prebuilt workspace has no deadline until it is claimed.");
  if (build.transition !== "start") return conflict("The workspace is not running.");
  if (isActive(job)) return conflict("The workspace is still starting.");
  if (!isRunning({ build, job })) return conflict("The last start of the workspace failed.");
  if (build.deadline === null) return conflict("The workspace has no deadline because autostop is off.");
  if (requested < now + MIN_AHEAD_MS) return invalidField("deadline", "must be at least 30 minutes ahead");
  if (build.max_deadline !== null && requested > build.max_deadline) {
    const latest = toRfc3339(build.max_deadline);
    return new AppError("invalid", "Cannot extend the workspace beyond its latest deadline.", {
      validations: [{ field: "deadline", detail: `must not be after ${latest}` }],
    });
  }
  return undefined;
};
