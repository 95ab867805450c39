// Schedules the server's automatic actions on a workspace: stop, start, make dormant, delete (facts/platform 2.7, "Periodic runner"). The
// actor keeps one timer for the earliest action and decides again when the timer is due (rules TI-14 to TI-24). Pure.
import { toRfc3339 } from "#base/clock.ts";
import { toWeekday } from "#base/schedule/cron.ts";
import type { WorkspaceRow } from "#db/workspaces/workspaces.ts";
import { isActive, toJobStatus } from "#schema/workspaces/job.ts";
import type { ActivityReason } from "#schema/workspaces/schedule.ts";
import { findNextAutostart, isRunning } from "./deadline.ts";
import type { NewBuild, WorkspaceState } from "./decision.ts";
import { isDormant, mayBeRunning, toDeletionTime } from "./dormancy.ts";
import { isUnclaimed, type ScheduleRules } from "./schedule-rules.ts";

/** Delay after a failed delete before the next attempt. */
export const DELETE_PAUSE_MS = 24 * 3_600_000;

export type Action = {
  readonly kind: ActivityReason &
    ("autostop" | "owner_suspended" | "autostart" | "failure" | "dormancy" | "autodelete");
  /** When the action becomes due, in milliseconds since 1970. */
  readonly at: number;
  readonly operation: "stop" | "start" | "make_dormant" | "delete";
  /** The reason of the action's build. */
  readonly reason: "autostop" | "task_auto_pause" | "autostart" | "dormancy" | "autodelete";
  /** The reason for people. */
  readonly detail: string;
};

type ScheduledState = Pick<WorkspaceState, "workspace" | "build" | "job" | "capturing">;

/** Returns all current and future automatic actions, in order of priority. Returns none during a build or a snapshot. */
export const planActions = (state: ScheduledState, rules: ScheduleRules): Action[] => {
  const { workspace, job, capturing } = state;
  if (workspace.deleted || capturing !== null || isActive(job) || isUnclaimed(workspace)) return [];
  return [findAutostop, findSuspendedStop, findAutostart, findFailureStop, findDormancy, findAutodelete].flatMap(
    (find) => find(state, rules) ?? [],
  );
};

/** Returns the first action that is due at `now`. */
export const findDueAction = (state: ScheduledState, rules: ScheduleRules, now: number): Action | undefined =>
  planActions(state, rules).find(({ at }) => at <= now);

/** Returns the earliest action. */
export const findNextAction = (state: ScheduledState, rules: ScheduleRules): Action | undefined => {
  const [first, ...others] = planActions(state, rules);
  return first && others.reduce((earliest, action) => (action.at < earliest.at ? action : earliest), first);
};

type FindAction = (state: ScheduledState, rules: ScheduleRules) => Action | undefined;

const findAutostop: FindAction = (state) => {
  const { workspace, build } = state;
  if (build.deadline === null || !isRunning(state) || isDormant(workspace)) return undefined;
  const detail = build.deadline === build.max_deadline ? "Its template requires a stop." : "It reached its deadline.";
  const reason = workspace.task_id === null ? "autostop" : "task_auto_pause";
  return { kind: "autostop", operation: "stop", reason, at: build.deadline, detail };
};

const findSuspendedStop: FindAction = (state, rules) => {
  if (rules.owner_status !== "suspended" || !mayBeRunning(state) || isDormant(state.workspace)) return undefined;
  if (toJobStatus(state.job) === "failed") return undefined;
  const at = state.job.completed_at ?? state.build.created_at;
  return { kind: "owner_suspended", operation: "stop", reason: "autostop", at, detail: "Its owner is suspended." };
};

const findAutostart: FindAction = (state, rules) => {
  const { next_start_at } = state.workspace;
  if (next_start_at === null || !canAutostart(state, rules, next_start_at)) return undefined;
  return {
    kind: "autostart",
    operation: "start",
    reason: "autostart",
    at: next_start_at,
    detail: "Its schedule starts it.",
  };
};

/** Returns true if the workspace may be started automatically at this time of its schedule. */
const canAutostart = ({ workspace, build, job }: ScheduledState, rules: ScheduleRules, at: number): boolean =>
  workspace.autostart_schedule !== null &&
  rules.allow_user_autostart &&
  rules.owner_status === "active" &&
  build.transition === "stop" &&
  toJobStatus(job) !== "failed" &&
  !isDormant(workspace) &&
  rules.autostart_requirement_days.includes(toWeekday(workspace.autostart_schedule, at));

const findFailureStop: FindAction = ({ build, job }, { failure_ttl_ms }) => {
  if (failure_ttl_ms <= 0 || build.transition !== "start" || toJobStatus(job) !== "failed") return undefined;
  const at = (job.completed_at ?? job.updated_at) + failure_ttl_ms;
  return { kind: "failure", operation: "stop", reason: "autostop", at, detail: "Its last start has failed." };
};

const findDormancy: FindAction = (state, { time_til_dormant_ms }) => {
  const { workspace } = state;
  const base = { kind: "dormancy", reason: "dormancy" } as const;
  if (isDormant(workspace)) {
    if (!mayBeRunning(state)) return undefined;
    return { ...base, operation: "stop", at: workspace.dormant_at ?? 0, detail: "It is dormant." };
  }
  if (time_til_dormant_ms <= 0) return undefined;
  const at = workspace.last_used_at + time_til_dormant_ms;
  const detail = `It has not been used since ${toRfc3339(workspace.last_used_at)}.`;
  return { ...base, operation: "make_dormant", at, detail };
};

const findAutodelete: FindAction = ({ workspace, build, job }, rules) => {
  const at = toDeletionTime(workspace, rules);
  if (at === null) return undefined;
  const retryAt = build.transition === "delete" ? (job.completed_at ?? job.updated_at) + DELETE_PAUSE_MS : 0;
  const detail = `It has been dormant since ${toRfc3339(workspace.dormant_at ?? 0)}.`;
  return { kind: "autodelete", operation: "delete", reason: "autodelete", at: Math.max(at, retryAt), detail };
};

/** Returns the changes of the columns that are derived from the state. `before`: undefined for a new workspace. */
export const deriveTimes = (
  before: ScheduledState | undefined,
  state: ScheduledState,
  rules: ScheduleRules,
  now: number,
): Partial<Pick<WorkspaceRow, "next_start_at" | "deleting_at">> => {
  const { workspace } = state;
  const deleting_at = workspace.deleted ? null : toDeletionTime(workspace, rules);
  const next_start_at = deriveNextStart(before, state, rules, now);
  return {
    ...(deleting_at === workspace.deleting_at ? {} : { deleting_at }),
    ...(next_start_at === workspace.next_start_at ? {} : { next_start_at }),
  };
};

const deriveNextStart = (
  before: ScheduledState | undefined,
  state: ScheduledState,
  rules: ScheduleRules,
  now: number,
): number | null => {
  const { workspace, build, job } = state;
  const { autostart_schedule } = workspace;
  if (workspace.deleted || isDormant(workspace) || autostart_schedule === null) return null;
  if (!rules.allow_user_autostart) return null;
  const storedStart = workspace.next_start_at;
  const isSame = before?.build.id === build.id && before.workspace.autostart_schedule === autostart_schedule;
  // If the time has passed while a build was active or the server was down, the autostart is still due (facts/platform 2.7).
  const isStillDue =
    storedStart !== null && storedStart <= now && isSame && (isActive(job) || canAutostart(state, rules, storedStart));
  return isStillDue ? storedStart : (findNextAutostart(workspace, rules, now) ?? null);
};

/** Returns true if anything has changed from which the times of the actions are derived. */
export const touchesTimes = (before: ScheduledState | undefined, after: ScheduledState): boolean =>
  before === undefined || toFingerprint(before) !== toFingerprint(after);

const toFingerprint = ({ workspace, build, job, capturing }: ScheduledState): string => {
  const { autostart_schedule, ttl_ms, dormant_at, deleted, owner_id, last_used_at, next_start_at } = workspace;
  const workspaceValues = [autostart_schedule, ttl_ms, dormant_at, deleted, owner_id, last_used_at, next_start_at];
  const otherValues = [build.id, build.deadline, job.completed_at, job.error, capturing?.snapshot_id];
  return [...workspaceValues, ...otherValues].join(" ");
};

/** Returns when the workspace's timer is due: the earliest time of an action or of an autostart; undefined for never. */
export const nextCheckTime = (state: ScheduledState, rules: ScheduleRules): number | undefined => {
  const { deleted, next_start_at } = state.workspace;
  const times = planActions(state, rules).map(({ at }) => at);
  // Even if no autostart is allowed at that time, the displayed time of the next start must then be updated.
  if (next_start_at !== null && !deleted && !isActive(state.job)) times.push(next_start_at);
  return times.length > 0 ? Math.min(...times) : undefined;
};

/** Returns the transition of an action's build; undefined if the action needs no build. */
export const toTransition = (action: Action, state: ScheduledState): NewBuild["transition"] | undefined => {
  if (action.operation === "make_dormant") return mayBeRunning(state) ? "stop" : undefined;
  return action.operation;
};
