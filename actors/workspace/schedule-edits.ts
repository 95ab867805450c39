// People's changes to a workspace's times: time to live, autostart, extension, dormancy and waking (facts/platform 2.6, 2.7 and 3.4). Pure;
// used only by the workspace actor. An unchanged value is `stale`.
import { rfc3339 } from "#base/clock.ts";
import { AppError, conflict, invalidField } from "#base/errors.ts";
import { scheduleProblem } from "#base/schedule/cron.ts";
import type { Statement } from "#db/engine/sql.ts";
import { updateWorkspace, type WorkspaceRow } from "#db/workspaces/workspaces.ts";
import { ttlProblem } from "#schema/workspaces/schedule.ts";
import { type By, note } from "./activity-note.ts";
import { extendProblem, isRunning } from "./deadline.ts";
import type { Decision, NewBuild, WorkspaceState } from "./decision.ts";
import { dormancyPatch, isDormant } from "./dormancy.ts";
import { isUnclaimed, type ScheduleRules } from "./schedule-rules.ts";
import { changed, transition } from "./state.ts";

const STALE: Decision = { kind: "stale" };
const refused = (error: AppError): Decision => ({ kind: "refused", error });

/** Returns why the workspace's times cannot be changed at all. */
const locked = ({ workspace }: WorkspaceState): AppError | undefined => {
  if (workspace.deleted) return new AppError("gone", "The workspace has been deleted.");
  return isUnclaimed(workspace) ? conflict("The workspace is kept ready for somebody and has no times.") : undefined;
};

/**
 * Takes effect at the next start. Null also removes the running deadline, as far as the template allows (rule TI-7). `ttl_ms` is in whole
 * minutes.
 */
export const withTtl = (
  state: WorkspaceState,
  rules: ScheduleRules,
  { ttl_ms, by }: { ttl_ms: number | null; by: By },
  now: number,
): Decision => {
  const { workspace, build } = state;
  const problem = locked(state);
  if (problem) return refused(problem);
  if (!rules.allow_user_autostop) {
    return refused(new AppError("invalid", "The template does not let its workspaces choose when they stop."));
  }
  const broken = ttl_ms === null ? undefined : ttlProblem(ttl_ms);
  if (broken) return refused(invalidField("ttl_ms", broken));
  const clears = ttl_ms === null && isRunning(state) && build.deadline !== build.max_deadline;
  if (!clears) {
    return ttl_ms === workspace.ttl_ms ? STALE : changed(state, { workspace: { ttl_ms, updated_at: now } }, []);
  }
  const deadline = build.max_deadline;
  const detail = "Its time to live was taken away.";
  return changed(
    state,
    { workspace: { ttl_ms, updated_at: now }, build: { deadline, updated_at: now } },
    note(state, now, { reason: "ttl_off", detail, by, new_deadline: deadline }),
  );
};

/** `schedule` null: no autostart. */
export const withAutostart = (
  state: WorkspaceState,
  rules: ScheduleRules,
  schedule: string | null,
  now: number,
): Decision => {
  const problem = locked(state);
  if (problem) return refused(problem);
  if (!rules.allow_user_autostart) {
    return refused(new AppError("invalid", "The template does not let its workspaces start by themselves."));
  }
  const broken = schedule === null ? undefined : scheduleProblem(schedule);
  if (broken) return refused(invalidField("schedule", broken));
  if (schedule === state.workspace.autostart_schedule) return STALE;
  return changed(state, { workspace: { autostart_schedule: schedule, updated_at: now } }, []);
};

/** Moves the deadline of a running workspace in either direction (rule TI-8). */
export const extended = (
  state: WorkspaceState,
  { deadline, by }: { deadline: number; by: By },
  now: number,
): Decision => {
  if (state.workspace.deleted) return refused(new AppError("gone", "The workspace has been deleted."));
  const problem = extendProblem(state, deadline, now);
  if (problem) return refused(problem);
  if (deadline === state.build.deadline) return STALE;
  const detail = `Its deadline was set to ${rfc3339(deadline)}.`;
  const kept = note(state, now, { reason: "extend", detail, by, new_deadline: deadline });
  return changed(state, { build: { deadline, updated_at: now } }, kept);
};

/** Makes the workspace dormant, with a stop if something may be running (rule TI-25), or wakes it. */
export const withDormancy = (
  state: WorkspaceState,
  { dormant, by, stop }: { dormant: boolean; by: By; stop?: NewBuild | undefined },
  now: number,
): Decision => {
  const problem = locked(state);
  if (problem) return refused(problem);
  if (isDormant(state.workspace) === dormant) return STALE;
  const detail = dormant ? "It was made dormant." : "It was woken.";
  const { deadline } = state.build;
  const reason = dormant ? ("dormancy" as const) : ("wake" as const);
  const kept = note(state, now, { reason, detail, by, new_deadline: stop ? null : deadline });
  return withBuild(state, dormancyPatch(dormant, now), stop, kept, now);
};

/** Changes columns of the workspace together with a build, in one batch. */
export const withBuild = (
  state: WorkspaceState,
  patch: Partial<WorkspaceRow>,
  build: NewBuild | undefined,
  writes: readonly Statement[],
  now: number,
): Decision => {
  if (!build) return changed(state, { workspace: patch }, writes);
  const decision = transition({ ...state, workspace: { ...state.workspace, ...patch } }, { type: "build", now, build });
  if (decision.kind !== "change") return decision;
  const first = Object.keys(patch).length > 0 ? [updateWorkspace(state.workspace.id, patch)] : [];
  return { ...decision, writes: [...first, ...decision.writes, ...writes] };
};
