// What the server does to a workspace on its own and when: stop, start, make dormant, delete (facts/platform 2.7, "Periodic runner").
// Pure. The actor keeps one timer for the earliest of these; what is due is decided afresh when it fires (rules TI-14 to TI-24).
import { rfc3339 } from "#base/clock.ts";
import { toWeekday } from "#base/schedule/cron.ts";
import type { WorkspaceRow } from "#db/workspaces/workspaces.ts";
import { isActive, jobStatus } from "#schema/workspaces/job.ts";
import type { ActivityReason } from "#schema/workspaces/schedule.ts";
import { isRunning, nextAutostart } from "./deadline.ts";
import type { NewBuild, WorkspaceState } from "./decision.ts";
import { deletingAt, isDormant, mayRun } from "./dormancy.ts";
import { isUnclaimed, type ScheduleRules } from "./schedule-rules.ts";

/** After a delete that did not end well the next one waits so long. */
export const DELETE_PAUSE_MS = 24 * 3_600_000;

export type Action = {
  readonly kind: ActivityReason &
    ("autostop" | "owner_suspended" | "autostart" | "failure" | "dormancy" | "autodelete");
  /** Due from then on; milliseconds since 1970. */
  readonly at: number;
  readonly what: "stop" | "start" | "make_dormant" | "delete";
  /** The reason its build has. */
  readonly reason: "autostop" | "task_auto_pause" | "autostart" | "dormancy" | "autodelete";
  /** For people. */
  readonly why: string;
};

type Known = Pick<WorkspaceState, "workspace" | "build" | "job" | "capturing">;

/** Everything that will happen by itself if nothing else does, in the order in which it is checked. Nothing during a build or a snapshot. */
export const planActions = (state: Known, rules: ScheduleRules): Action[] => {
  const { workspace, job, capturing } = state;
  if (workspace.deleted || capturing !== null || isActive(job) || isUnclaimed(workspace)) return [];
  return [autostop, suspended, autostart, failure, dormancy, autodelete].flatMap((one) => one(state, rules) ?? []);
};

/** The first of the actions that are due at `now`. */
export const dueAction = (state: Known, rules: ScheduleRules, now: number): Action | undefined =>
  planActions(state, rules).find(({ at }) => at <= now);

/** The action that comes first. */
export const nextAction = (state: Known, rules: ScheduleRules): Action | undefined => {
  const [first, ...others] = planActions(state, rules);
  return first && others.reduce((best, one) => (one.at < best.at ? one : best), first);
};

type Rule = (state: Known, rules: ScheduleRules) => Action | undefined;

const autostop: Rule = (state) => {
  const { workspace, build } = state;
  if (build.deadline === null || !isRunning(state) || isDormant(workspace)) return undefined;
  const why = build.deadline === build.max_deadline ? "Its template requires a stop." : "Its deadline is reached.";
  const reason = workspace.task_id === null ? "autostop" : "task_auto_pause";
  return { kind: "autostop", what: "stop", reason, at: build.deadline, why };
};

const suspended: Rule = (state, rules) => {
  if (rules.owner_status !== "suspended" || !mayRun(state) || isDormant(state.workspace)) return undefined;
  if (jobStatus(state.job) === "failed") return undefined;
  const at = state.job.completed_at ?? state.build.created_at;
  return { kind: "owner_suspended", what: "stop", reason: "autostop", at, why: "Its owner is suspended." };
};

const autostart: Rule = (state, rules) => {
  const { next_start_at } = state.workspace;
  if (next_start_at === null || !mayAutostart(state, rules, next_start_at)) return undefined;
  return { kind: "autostart", what: "start", reason: "autostart", at: next_start_at, why: "Its schedule starts it." };
};

/** Everything but the time itself. */
const mayAutostart = ({ workspace, build, job }: Known, rules: ScheduleRules, at: number): boolean =>
  workspace.autostart_schedule !== null &&
  rules.allow_user_autostart &&
  rules.owner_status === "active" &&
  build.transition === "stop" &&
  jobStatus(job) !== "failed" &&
  !isDormant(workspace) &&
  rules.autostart_requirement_days.includes(toWeekday(workspace.autostart_schedule, at));

const failure: Rule = ({ build, job }, { failure_ttl_ms }) => {
  if (failure_ttl_ms <= 0 || build.transition !== "start" || jobStatus(job) !== "failed") return undefined;
  const at = (job.completed_at ?? job.updated_at) + failure_ttl_ms;
  return { kind: "failure", what: "stop", reason: "autostop", at, why: "Its last start has failed." };
};

const dormancy: Rule = (state, { time_til_dormant_ms }) => {
  const { workspace } = state;
  const asleep = { kind: "dormancy", reason: "dormancy" } as const;
  if (isDormant(workspace)) {
    if (!mayRun(state)) return undefined;
    return { ...asleep, what: "stop", at: workspace.dormant_at ?? 0, why: "It is dormant." };
  }
  if (time_til_dormant_ms <= 0) return undefined;
  const at = workspace.last_used_at + time_til_dormant_ms;
  const why = `It has not been used since ${rfc3339(workspace.last_used_at)}.`;
  return { ...asleep, what: "make_dormant", at, why };
};

const autodelete: Rule = ({ workspace, build, job }, rules) => {
  const at = deletingAt(workspace, rules);
  if (at === null) return undefined;
  const pause = build.transition === "delete" ? (job.completed_at ?? job.updated_at) + DELETE_PAUSE_MS : 0;
  const why = `It has been dormant since ${rfc3339(workspace.dormant_at ?? 0)}.`;
  return { kind: "autodelete", what: "delete", reason: "autodelete", at: Math.max(at, pause), why };
};

/** What becomes of the columns that follow from others; only those that change. `before` is undefined for a new workspace. */
export const derivedTimes = (
  before: Known | undefined,
  state: Known,
  rules: ScheduleRules,
  now: number,
): Partial<Pick<WorkspaceRow, "next_start_at" | "deleting_at">> => {
  const { workspace } = state;
  const deleting_at = workspace.deleted ? null : deletingAt(workspace, rules);
  const next_start_at = nextStart(before, state, rules, now);
  return {
    ...(deleting_at === workspace.deleting_at ? {} : { deleting_at }),
    ...(next_start_at === workspace.next_start_at ? {} : { next_start_at }),
  };
};

const nextStart = (before: Known | undefined, state: Known, rules: ScheduleRules, now: number): number | null => {
  const { workspace, build, job } = state;
  const { autostart_schedule } = workspace;
  if (workspace.deleted || isDormant(workspace) || autostart_schedule === null) return null;
  if (!rules.allow_user_autostart) return null;
  const kept = workspace.next_start_at;
  const isSame = before?.build.id === build.id && before.workspace.autostart_schedule === autostart_schedule;
  // Reached while a build was active, or by a server that was away: it counts from the last build (facts/platform 2.7).
  const isOwed = kept !== null && kept <= now && isSame && (isActive(job) || mayAutostart(state, rules, kept));
  return isOwed ? kept : (nextAutostart(workspace, rules, now) ?? null);
};

/** True when something has changed that the times follow from. */
export const touchesTimes = (before: Known | undefined, after: Known): boolean =>
  before === undefined || facts(before) !== facts(after);

const facts = ({ workspace, build, job, capturing }: Known): string =>
  [
    ...[workspace.autostart_schedule, workspace.ttl_ms, workspace.dormant_at, workspace.deleted, workspace.owner_id],
    ...[
      workspace.last_used_at,
      workspace.next_start_at,
      build.id,
      build.deadline,
      job.completed_at,
      job.error,
      capturing?.snapshot_id,
    ],
  ].join(" ");

/** When the workspace's one timer is due: the earliest time at which there may be something to do; undefined: never. */
export const nextLook = (state: Known, rules: ScheduleRules): number | undefined => {
  const { deleted, next_start_at } = state.workspace;
  const times = planActions(state, rules).map(({ at }) => at);
  // Also when it may not start then: the time after that is to be shown.
  if (next_start_at !== null && !deleted && !isActive(state.job)) times.push(next_start_at);
  return times.length > 0 ? Math.min(...times) : undefined;
};

/** What the build of an action does; making a workspace dormant needs one only when something may run. */
export const toTransition = (action: Action, state: Known): NewBuild["transition"] | undefined => {
  if (action.what === "make_dormant") return mayRun(state) ? "stop" : undefined;
  return action.what;
};
