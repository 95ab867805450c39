// Decides the state transitions of a workspace and its builds: takes a state and a command, and returns the next state, writes, events and
// effects (docs/spec/design.md 3, rule 2; facts/platform 2.1). Pure; used only by the workspace actor.
import { AppError, conflict } from "#base/errors.ts";
import type { Statement } from "#db/engine/sql.ts";
import { clearTimer, setTimer } from "#db/engine/timers.ts";
import { guardTemplate } from "#db/templates/templates.ts";
import { guardUser } from "#db/users/users.ts";
import { type BuildRow, insertBuild, insertBuildParameters, updateBuild } from "#db/workspaces/builds.ts";
import { insertJob, insertJobLogs, updateJob } from "#db/workspaces/jobs.ts";
import { guardSnapshot } from "#db/workspaces/snapshots.ts";
import { insertWorkspace, updateWorkspace, type WorkspaceRow } from "#db/workspaces/workspaces.ts";
import { buildStatus } from "#schema/workspaces/build.ts";
import { isActive, toJobStatus } from "#schema/workspaces/job.ts";
import {
  addPlaceTag,
  bindTagsToWorker,
  toUnreportedBuildTags,
  unbindTagsFromWorker,
} from "#src/provisioners/external/tags.ts";
import { appendLogs, createReapLines, presentJobLog } from "../job/logs.ts";
import {
  formatReapReason,
  getReapTime,
  isCurrentAttempt,
  type JobCommand,
  type JobPatch,
  type JobState,
  PENDING,
  transitionJob,
} from "../job/state.ts";
import { insertNote } from "./activity-note.ts";
import { initialDeadlines } from "./deadline.ts";
import type {
  Change,
  Decision,
  NewBuild,
  WorkspaceCommand,
  WorkspaceEffect,
  WorkspaceEvent,
  WorkspaceState,
} from "./decision.ts";
import { DEFAULT_RULES } from "./schedule-rules.ts";
import { SNAPSHOT_IN_PROGRESS, toDiscardEffect, withSnapshotOnStop } from "./snapshot-rows.ts";
import { buildTrashDeletion, isEmptyingTrash } from "./trash.ts";

const STALE: Decision = { kind: "stale" };
const setReapTimer = (state: WorkspaceState): Statement =>
  setTimer("workspace", state.workspace.id, "reap", getReapTime(state.job));

/** Creates a workspace with its first build (rule WK-1). */
export const create = (workspace: WorkspaceRow, first: NewBuild, now: number): Change => {
  const { state, writes } = begin(workspace, first, 1, NO_PREVIOUS_STATE, now);
  const guards = [guardTemplate({ id: workspace.template_id }), guardUser({ id: workspace.owner_id })];
  return {
    kind: "change",
    state,
    // The guards reject the workspace if its template or owner is deleted at the same time (rules TP-19, ID-26). The build refers to the
    // workspace's row, so the row comes first.
    writes: [...guards, insertWorkspace(state.workspace), ...writes],
    events: [],
    effects: [{ do: "submit", job_id: first.job_id }],
  };
};

/** Decides a command. A report is `stale` if its job is not the latest or has ended, or if it belongs to an earlier run (rule WK-7). */
export const transition = (state: WorkspaceState, command: WorkspaceCommand): Decision => {
  if ("job_id" in command && command.job_id !== state.job.id) return STALE;
  switch (command.type) {
    case "build":
      return addBuild(state, command.build, command.now);
    case "say":
      return appendOutput(state, command);
    case "favor":
      if (command.favorite === state.workspace.favorite) return STALE;
      return toVisibleChange(state, { workspace: { favorite: command.favorite } }, []);
    case "start":
      return moveJob(state, command, (patch) => startJob(state, command, patch));
    case "touch":
      return moveJob(state, command, (patch) => toQuietChange(state, patch));
    case "charge":
      if (!isActive(state.job) || !isCurrentAttempt(state.job, command)) return STALE;
      return toVisibleChange(
        state,
        { build: { daily_cost: command.daily_cost, updated_at: command.now } },
        command.guards,
      );
    case "complete":
      return moveJob(state, command, (patch) => {
        const change = completeBuild(state, patch, command);
        return beginFollowUp(command.unheard ? change : releasePlace(change), command.now);
      });
    case "cancel":
      return cancel(state, command);
    case "fail":
      return moveJob(state, command, (patch) => {
        const change = toVisibleChange(
          state,
          { job: patch, build: { updated_at: patch.updated_at, ...command.left } },
          [],
        );
        return command.left ? releasePlace(change) : change;
      });
    case "requeue":
      return requeue(state, command);
    case "reap":
      return reap(state, command.now, command.first_id);
  }
};

/** Removes the job's restriction to one place. The state is known or given up, so any worker can run the next build. */
const releasePlace = (change: Change): Change => {
  const { state } = change;
  const tags = unbindTagsFromWorker(state.tags);
  if (tags.place === state.tags.place) return change;
  return {
    ...change,
    state: { ...state, tags },
    writes: [...change.writes, updateJob(state.job.id, { tags }, { expect: 1 })],
  };
};

type Patches = {
  workspace?: Partial<WorkspaceRow>;
  build?: Partial<BuildRow>;
  job?: JobPatch;
};

/** Returns a change that watchers see, which increments the workspace's version. */
export const toVisibleChange = (
  state: WorkspaceState,
  patches: Patches,
  writes: readonly Statement[],
  extraEvents: readonly WorkspaceEvent[] = [],
): Change => {
  const version = state.workspace.version + 1;
  const build = { ...state.build, ...patches.build };
  const job = { ...state.job, ...patches.job };
  const status = buildStatus(toJobStatus(job), build.transition);
  const statusPatch = status === state.workspace.status ? {} : { status };
  const workspacePatch = { ...patches.workspace, ...statusPatch, version };
  const hasEnded = isActive(state.job) && !isActive(job);
  // A stop or delete build signs the agents out at its end (rule WK-25).
  const signedOut = hasEnded && endsAgents(state) ? state.agent_ids : [];
  const agent_ids = signedOut.length > 0 ? [] : state.agent_ids;
  const next: WorkspaceState = {
    ...state,
    workspace: { ...state.workspace, ...workspacePatch },
    build,
    job,
    agent_ids,
  };
  return {
    kind: "change",
    state: next,
    writes: [
      updateWorkspace(state.workspace.id, workspacePatch, { expect: 1 }),
      ...(patches.build ? [updateBuild(state.build.id, patches.build, { expect: 1 })] : []),
      ...(patches.job ? [updateJob(state.job.id, patches.job, { expect: 1 })] : []),
      ...writes,
      ...(patches.job ? [hasEnded ? clearTimer("workspace", state.workspace.id, "reap") : setReapTimer(next)] : []),
    ],
    events: [
      { topic: "workspace", version, latest_build_id: next.build.id },
      ...(hasEnded ? [{ topic: "job" as const, job_id: next.job.id, logs: [], done: true }] : []),
      ...toGoneEvents(signedOut),
      ...extraEvents,
    ],
    effects: [],
  };
};

/** Returns true for a stop or delete build. */
const endsAgents = ({ build }: WorkspaceState): boolean => build.transition !== "start";

const toGoneEvents = (agent_ids: readonly string[]): WorkspaceEvent[] =>
  agent_ids.map((agent_id) => ({ topic: "agent_gone", agent_id }));

/** Returns a change that watchers do not see. */
const toQuietChange = (state: WorkspaceState, patch: JobPatch): Change => ({
  kind: "change",
  state: { ...state, job: { ...state.job, ...patch } },
  writes: [updateJob(state.job.id, patch, { expect: 1 })],
  events: [],
  effects: [],
});

/** Applies the command to the job, and lets `decide` decide about the resulting patch. Returns `stale` if the job does not change. */
const moveJob = (state: WorkspaceState, command: JobCommand, decide: (patch: JobPatch) => Decision): Decision => {
  const patch = transitionJob(state.job, command);
  return patch ? decide(patch) : STALE;
};

/** Starts the job. Restricts it to the worker's place, because a retry needs the unfinished work there. */
const startJob = (
  state: WorkspaceState,
  { worker, rows, agent_ids, daily_cost, now }: Extract<WorkspaceCommand, { type: "start" }>,
  patch: JobPatch,
): Decision => {
  const tags = bindTagsToWorker(state.tags, worker.places);
  const tagWrites = tags === state.tags ? [] : [updateJob(state.job.id, { tags }, { expect: 1 })];
  return toVisibleChange(
    { ...state, tags, ...(endsAgents(state) ? {} : { agent_ids }) },
    { job: patch, build: { daily_cost, updated_at: now } },
    [...tagWrites, ...rows],
    // A restarted build has new agents, which replace those of the previous attempt.
    endsAgents(state) ? [] : toGoneEvents(state.agent_ids.filter((agent_id) => !agent_ids.includes(agent_id))),
  );
};

const patchJob = (state: WorkspaceState, patch: JobPatch): Change =>
  toVisibleChange(state, { job: patch, build: { updated_at: patch.updated_at } }, []);

const addBuild = (state: WorkspaceState, build: NewBuild, now: number): Decision => {
  const { workspace } = state;
  if (isActive(state.job)) return { kind: "refused", error: conflict("Another build of the workspace is active.") };
  if (workspace.deleted && !isEmptyingTrash(workspace, build)) {
    return { kind: "refused", error: conflict("The workspace has been deleted.") };
  }
  if (state.capturing !== null) return { kind: "refused", error: conflict(SNAPSHOT_IN_PROGRESS) };
  const number = state.build.build_number + 1;
  // Starting a dormant workspace first wakes it (facts/platform 2.1).
  const wakeUpPatch =
    build.transition === "start" && workspace.dormant_at !== null
      ? { dormant_at: null, deleting_at: null, last_used_at: now }
      : {};
  const approvalPatch = build.approves_schedule ? { autostart_no_user_data: false } : {};
  const unreportedTags = build.orphan || build.told !== undefined ? {} : toUnreportedBuildTags(state.tags);
  const restore = build.restore ?? findUnfinishedRestore(state, build);
  const requested = { ...build, ...(restore ? { restore } : {}), tags: { ...build.tags, ...unreportedTags } };
  const previousState = { ...state.build, state: build.told ?? state.build.state };
  const started = begin({ ...workspace, ...wakeUpPatch, ...approvalPatch }, requested, number, previousState, now);
  const { version, status } = started.state.workspace;
  const patch = { ...wakeUpPatch, ...approvalPatch, latest_build_id: build.id, status, updated_at: now, version };
  return {
    kind: "change",
    // A stop or delete build signs the agents out only at its end, because their stop scripts still send reports.
    state: build.transition === "start" ? started.state : { ...started.state, agent_ids: state.agent_ids },
    writes: [updateWorkspace(workspace.id, patch, { expect: 1 }), ...started.writes],
    events: [
      { topic: "workspace", version, latest_build_id: build.id },
      ...(build.transition === "start" ? toGoneEvents(state.agent_ids) : []),
    ],
    effects: [{ do: "submit", job_id: build.job_id }],
  };
};

/** Returns the snapshot that the new build of a fork must still restore, because the previous build did not succeed. */
const findUnfinishedRestore = (
  { workspace, build, job }: WorkspaceState,
  { transition }: NewBuild,
): NewBuild["restore"] => {
  const { restored_snapshot_id: snapshot_id, restored_workspace_id: workspace_id } = build;
  if (transition === "delete" || toJobStatus(job) === "succeeded" || build.restores_once) return undefined;
  if (workspace_id === workspace.id) return undefined;
  return snapshot_id && workspace_id ? { snapshot_id, workspace_id } : undefined;
};

/** The part of the previous build that remains if the new build fails. */
type PreviousState = Pick<BuildRow, "state" | "sealed_snapshot_value" | "daily_cost">;
const NO_PREVIOUS_STATE: PreviousState = { state: null, sealed_snapshot_value: "", daily_cost: 0 };

/** Returns the state in which the build is the latest one and its job is pending, and the rows to insert. */
const begin = (
  workspace: WorkspaceRow,
  {
    job_id,
    job_key,
    parameters,
    provisioner,
    file_id,
    tags: requested,
    told: _told,
    followed_by,
    restore,
    kept_ms,
    no_user_data = false,
    approves_schedule: _approves_schedule,
    ...build
  }: NewBuild,
  build_number: number,
  previous: PreviousState,
  now: number,
): { state: WorkspaceState; writes: Statement[] } => {
  const tags = addPlaceTag(requested, previous.state);
  const row: BuildRow = {
    ...build,
    job_id,
    workspace_id: workspace.id,
    build_number,
    // Until the build starts, the resources of the previous build keep running.
    daily_cost: previous.daily_cost,
    deadline: null,
    max_deadline: null,
    created_at: now,
    updated_at: now,
    state: previous.state,
    followed_by: followed_by ?? null,
    kept_ms: kept_ms ?? null,
    no_user_data,
    restored_snapshot_id: restore?.snapshot_id ?? null,
    restored_workspace_id: restore?.workspace_id ?? null,
    restores_once: restore?.once ?? false,
    sealed_snapshot_value: restore?.sealed_value ?? previous.sealed_snapshot_value,
  };
  const job: JobState = {
    id: job_id,
    key: job_key,
    created_at: now,
    updated_at: now,
    ...PENDING,
  };
  const state: WorkspaceState = {
    workspace: {
      ...workspace,
      latest_build_id: row.id,
      status: "pending",
      updated_at: now,
      version: workspace.version + 1,
    },
    build: row,
    job,
    tags,
    timings: [],
    agent_ids: [],
    capturing: null,
  };
  const input = { template_version_id: build.template_version_id, workspace_build_id: row.id };
  const { organization_id } = workspace;
  const { initiator_id } = build;
  return {
    state,
    writes: [
      insertJob({ ...job, organization_id, initiator_id, type: "workspace_build", provisioner, file_id, tags, input }),
      insertBuild(row),
      // Rejects the build if the snapshot is being deleted.
      ...(restore ? [guardSnapshot({ id: restore.snapshot_id })] : []),
      ...(parameters.length > 0
        ? [insertBuildParameters(parameters.map(({ name, value }) => ({ build_id: row.id, name, value })))]
        : []),
      setReapTimer(state),
    ],
  };
};

const completeBuild = (
  before: WorkspaceState,
  patch: JobPatch,
  {
    state: providedState,
    rules = DEFAULT_RULES,
    claimed = false,
    made: created,
    snapshot,
    kept_bytes,
    made_snapshots = [],
  }: Extract<WorkspaceCommand, { type: "complete" }>,
): Change => {
  const now = patch.updated_at;
  const state = created && !endsAgents(before) ? { ...before, agent_ids: created.agent_ids } : before;
  // A build that was canceled stays canceled, even if it has succeeded since (facts/platform 2.1).
  if (state.job.canceled_at !== null) {
    const statePatch = providedState === null ? {} : { state: providedState };
    return toVisibleChange(before, { job: patch, build: { updated_at: now, ...statePatch } }, []);
  }
  const build = { updated_at: now, state: providedState, ...(created ? { daily_cost: created.daily_cost } : {}) };
  const rows = created?.rows ?? [];
  if (state.build.transition === "start") {
    const deadlines = initialDeadlines(state.workspace, rules, now);
    const entry = { reason: "start", detail: "It has started.", new_deadline: deadlines.deadline } as const;
    const writes = [...rows, ...(deadlines.deadline === null ? [] : insertNote(state, now, entry))];
    const { owner_id } = state.workspace;
    const claimEvents = claimed ? [{ topic: "reinit", owner_id } as const] : [];
    return toVisibleChange(state, { job: patch, build: { ...build, ...deadlines } }, writes, claimEvents);
  }
  if (state.build.transition === "stop") {
    const change = toVisibleChange(state, { job: patch, build }, rows);
    return snapshot ? withSnapshotOnStop(change, snapshot, now) : change;
  }
  const { writes, workspace } = buildTrashDeletion(state, { kept_bytes, made_snapshots }, now);
  return {
    ...toVisibleChange(state, { job: patch, build, workspace }, writes, [{ topic: "access_changed" }]),
    effects: made_snapshots.map(toDiscardEffect),
  };
};

/**
 * Combines the end of a build and the beginning of its follow-up build into one change, so that a crash cannot separate them. After a
 * failed or canceled build, no follow-up begins.
 */
const beginFollowUp = (change: Change, now: number): Change => {
  const { build, job } = change.state;
  if (build.followed_by === null || toJobStatus(job) !== "succeeded") return change;
  const next = addBuild(change.state, build.followed_by, now);
  if (next.kind !== "change") return change;
  return {
    kind: "change",
    state: next.state,
    writes: [...change.writes, ...next.writes],
    events: [...change.events, ...next.events],
    effects: [...change.effects, ...next.effects],
  };
};

const cancel = (state: WorkspaceState, command: JobCommand): Decision => {
  const status = toJobStatus(state.job);
  if (!isActive(state.job)) return toRefusal("The job has already ended.");
  if (status === "canceling") return toRefusal("The job has already been marked as canceled.");
  return moveJob(state, command, (patch) => {
    const change = patchJob(state, patch);
    const withEffect = { ...change, effects: [{ do: "cancel" as const, job_id: state.job.id }] };
    // If the job has not begun, no worker has a state to report.
    return isActive(change.state.job) ? withEffect : releasePlace(withEffect);
  });
};

const toRefusal = (message: string): Decision => ({ kind: "refused", error: new AppError("invalid", message) });

const requeue = (state: WorkspaceState, command: Extract<WorkspaceCommand, { type: "requeue" }>): Decision => {
  const submit: WorkspaceEffect[] = [{ do: "submit", job_id: state.job.id }];
  if (toJobStatus(state.job) === "pending" && isCurrentAttempt(state.job, command))
    return { kind: "change", state, writes: [], events: [], effects: submit };
  return moveJob(state, command, (patch) => {
    const change = patchJob(state, patch);
    return isActive(change.state.job) ? { ...change, effects: submit } : change;
  });
};

const reap = (state: WorkspaceState, now: number, firstId: number): Decision => {
  if (!isActive(state.job))
    return { ...unchanged(state), writes: [clearTimer("workspace", state.workspace.id, "reap")] };
  const patch = transitionJob(state.job, { type: "reap", now });
  // The worker has sent a heartbeat since the timer was set.
  if (!patch) return { ...unchanged(state), writes: [setReapTimer(state)] };
  const appended = appendLogs(state.job, createReapLines(formatReapReason(state.job), now), firstId, now);
  const rows = appended?.rows ?? [];
  const change = toVisibleChange(
    state,
    { job: { ...appended?.patch, ...patch }, build: { updated_at: now } },
    rows.length > 0 ? [insertJobLogs(rows)] : [],
  );
  const jobEvent: WorkspaceEvent = {
    topic: "job",
    job_id: state.job.id,
    logs: rows.map(presentJobLog),
    done: false,
  };
  return { ...change, events: [jobEvent, ...change.events], effects: [{ do: "cancel", job_id: state.job.id }] };
};

const unchanged = (state: WorkspaceState): Change => ({ kind: "change", state, writes: [], events: [], effects: [] });

const appendOutput = (state: WorkspaceState, output: Extract<WorkspaceCommand, { type: "say" }>): Decision => {
  if (!isActive(state.job) || !isCurrentAttempt(state.job, output)) return STALE;
  const appended = appendLogs(state.job, output.logs, output.first_id, output.now);
  const timings = output.timings.length > 0 ? [...state.timings, ...output.timings] : state.timings;
  if (!appended && timings === state.timings) return STALE;
  const updatePatch: JobPatch = appended?.patch ?? { updated_at: output.now };
  const patch = { ...updatePatch, ...(timings === state.timings ? {} : { timings }) };
  const rows = appended?.rows ?? [];
  const next = { ...state, timings, job: { ...state.job, ...updatePatch } };
  const jobEvents: WorkspaceEvent[] =
    rows.length > 0 ? [{ topic: "job", job_id: state.job.id, logs: rows.map(presentJobLog), done: false }] : [];
  const base: Change = {
    kind: "change",
    state: next,
    writes: [updateJob(state.job.id, patch, { expect: 1 }), ...(rows.length > 0 ? [insertJobLogs(rows)] : [])],
    events: jobEvents,
    effects: [],
  };
  // Watchers of the workspace do not see log lines, but they see when the log becomes full.
  if (next.job.logs_overflowed === state.job.logs_overflowed) return base;
  const visible = toVisibleChange(next, {}, []);
  return { ...visible, writes: [...visible.writes, ...base.writes], events: [...jobEvents, ...visible.events] };
};
