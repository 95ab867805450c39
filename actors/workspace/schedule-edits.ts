// Decides about people's changes to a workspace's times: time to live, autostart, extension, dormancy and waking (facts/platform 2.6, 2.7
// and 3.4). An unchanged value is `stale`. Pure; used only by the workspace actor.
import { toRfc3339 } from "#base/clock.ts";
import { AppError, conflict, invalidField } from "#base/errors.ts";
import { findScheduleProblem } from "#base/schedule/cron.ts";
import type { Statement } from "#db/engine/sql.ts";
import { updateWorkspace, type WorkspaceRow } from "#db/workspaces/workspaces.ts";
import { findTtlProblem } from "#schema/workspaces/schedule.ts";
import { insertNote, type Originator } from "./activity-note.ts";
import { findExtendProblem, isRunning } from "./deadline.ts";
import type { Decision, NewBuild, WorkspaceState } from "./decision.ts";
import { isDormant, toDormancyPatch } from "./dormancy.ts";
import { isUnclaimed, type ScheduleRules } from "./schedule-rules.ts";
import { toVisibleChange, transition } from "./state.ts";

const STALE: Decision = { kind: "stale" };
const toRefusal = (error: AppError): Decision => ({ kind: "refused", error });

/** Returns why the workspace's times cannot be changed. */
const findEditProblem = ({ workspace }: WorkspaceState): AppError | undefined => {
  if (workspace.deleted) return new AppError("gone", "The workspace has been deleted.");
  return isUnclaimed(workspace) ? conflict("A prebuilt workspace has no schedule until it is claimed.") : undefined;
};

/** Sets the time to live for the next start. Null also removes the current deadline, as far as the template allows (rule TI-7). */
export const withTtl = (
  state: WorkspaceState,
  rules: ScheduleRules,
  { ttl_ms, by }: { ttl_ms: number | null; by: Originator },
  now: number,
): Decision => {
  const { workspace, build } = state;
  const problem = findEditProblem(state);
  if (problem) return toRefusal(problem);
  if (!rules.allow_user_autostop) {
    return toRefusal(new AppError("invalid", "The template does not allow its workspaces to change autostop."));
  }
  const fieldProblem = ttl_ms === null ? undefined : findTtlProblem(ttl_ms);
  if (fieldProblem) return toRefusal(invalidField("ttl_ms", fieldProblem));
  const clearsDeadline = ttl_ms === null && isRunning(state) && build.deadline !== build.max_deadline;
  if (!clearsDeadline) {
    return ttl_ms === workspace.ttl_ms ? STALE : toVisibleChange(state, { workspace: { ttl_ms, updated_at: now } }, []);
  }
  const deadline = build.max_deadline;
  const detail = "Autostop was turned off.";
  return toVisibleChange(
    state,
    { workspace: { ttl_ms, updated_at: now }, build: { deadline, updated_at: now } },
    insertNote(state, now, { reason: "ttl_off", detail, by, new_deadline: deadline }),
  );
};

/** Sets the autostart schedule; null disables autostart. `no_user_data`: true if the caller has no access to the workspace. */
export const withAutostart = (
  state: WorkspaceState,
  rules: ScheduleRules,
  schedule: string | null,
  now: number,
  no_user_data = false,
): Decision => {
  const problem = findEditProblem(state);
  if (problem) return toRefusal(problem);
  if (!rules.allow_user_autostart) {
    return toRefusal(new AppError("invalid", "The template does not allow autostart."));
  }
  const fieldProblem = schedule === null ? undefined : findScheduleProblem(schedule);
  if (fieldProblem) return toRefusal(invalidField("schedule", fieldProblem));
  const { workspace } = state;
  const autostart_no_user_data = schedule !== null && no_user_data;
  const isApproval = workspace.autostart_no_user_data && !autostart_no_user_data;
  if (schedule === workspace.autostart_schedule && !isApproval) return STALE;
  const patch = { autostart_schedule: schedule, autostart_no_user_data, updated_at: now };
  return toVisibleChange(state, { workspace: patch }, []);
};

/** Moves the deadline of a running workspace in either direction (rule TI-8). */
export const extendDeadline = (
  state: WorkspaceState,
  { deadline, by }: { deadline: number; by: Originator },
  now: number,
): Decision => {
  if (state.workspace.deleted) return toRefusal(new AppError("gone", "The workspace has been deleted."));
  const problem = findExtendProblem(state, deadline, now);
  if (problem) return toRefusal(problem);
  if (deadline === state.build.deadline) return STALE;
  const detail = `Its deadline was set to ${toRfc3339(deadline)}.`;
  const entry = insertNote(state, now, { reason: "extend", detail, by, new_deadline: deadline });
  return toVisibleChange(state, { build: { deadline, updated_at: now } }, entry);
};

/** Makes the workspace dormant, or wakes it. `stop`: the build that stops a workspace that may be running (rule TI-25). */
export const withDormancy = (
  state: WorkspaceState,
  { dormant, by, stop }: { dormant: boolean; by: Originator; stop?: NewBuild | undefined },
  now: number,
): Decision => {
  const problem = findEditProblem(state);
  if (problem) return toRefusal(problem);
  if (isDormant(state.workspace) === dormant) return STALE;
  const detail = dormant ? "It was made dormant." : "It was woken.";
  const { deadline } = state.build;
  const reason = dormant ? ("dormancy" as const) : ("wake" as const);
  const entry = insertNote(state, now, { reason, detail, by, new_deadline: stop ? null : deadline });
  return withBuild(state, toDormancyPatch(dormant, now), stop, entry, now);
};

/** Changes columns of the workspace together with a build, in one batch. */
export const withBuild = (
  state: WorkspaceState,
  patch: Partial<WorkspaceRow>,
  build: NewBuild | undefined,
  writes: readonly Statement[],
  now: number,
): Decision => {
  if (!build) return toVisibleChange(state, { workspace: patch }, writes);
  const decision = transition({ ...state, workspace: { ...state.workspace, ...patch } }, { type: "build", now, build });
  if (decision.kind !== "change") return decision;
  const patchWrites = Object.keys(patch).length > 0 ? [updateWorkspace(state.workspace.id, patch)] : [];
  return { ...decision, writes: [...patchWrites, ...decision.writes, ...writes] };
};
