// Converts a change of a workspace to what its actor commits, announces and starts.

import { conflict } from "#base/errors.ts";
import type { Statement } from "#db/engine/sql.ts";
import { isActive, toJobStatus } from "#schema/workspaces/job.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import type { Outcome } from "../runtime/actor.ts";
import type { Urgency } from "../runtime/remote-queues.ts";
import type { Change, Decision, WorkspaceState } from "./decision.ts";
import type { WorkspaceDeps } from "./deps.ts";

type Deps = Pick<WorkspaceDeps, "topics" | "builds" | "snapshots">;

/** The reply to a message that may be late. A late message is not an error. */
export type LateResult = "done" | "stale";

export const toOutcome = <Reply>(deps: Deps, change: Change, reply: Reply): Outcome<WorkspaceState, Reply> => ({
  state: change.state,
  writes: change.writes,
  after: () => publish(deps, change),
  reply,
});

/** Converts a decision to an outcome. Throws the error of a refused decision. Replies with `stale` if nothing changes. */
export const toSettledOutcome = <Reply>(
  deps: Deps,
  state: WorkspaceState,
  decision: Decision,
  reply: Reply,
  stale: Reply,
): Outcome<WorkspaceState, Reply> => {
  if (decision.kind === "refused") throw decision.error;
  return decision.kind === "stale" ? { state, reply: stale } : toOutcome(deps, decision, reply);
};

const publish = ({ topics, builds, snapshots }: Deps, { state, events, effects }: Change): void => {
  const { id, owner_id, part } = state.workspace;
  for (const event of events) {
    if (event.topic === "job") topics.publish("job", event.job_id, { logs: event.logs, done: event.done });
    else if (event.topic === "agent_gone") topics.publish("agent_gone", event.agent_id, {});
    else if (event.topic === "access_changed") topics.publish("access_changed", id, {});
    else if (event.topic === "reinit") topics.publish("reinit", id, { owner_id: event.owner_id });
    else {
      const { version, latest_build_id } = event;
      topics.publish("workspace", id, { version, latest_build_id });
    }
  }
  for (const effect of effects) {
    if (effect.do === "cancel") builds.cancel(effect.job_id);
    else if (effect.do === "submit") submit(builds, state, effect.job_id);
    else {
      const { snapshot_id, provisioner, home_backup_id } = effect;
      snapshots[effect.do]({ workspace_id: id, owner_id, snapshot_id, provisioner, home_backup_id, part });
    }
  }
};

const submit = (
  builds: Deps["builds"],
  { build, job, tags, workspace: { id, part } }: WorkspaceState,
  job_id: string,
): void =>
  builds.submit({ workspace_id: id, job_id, created_at: job.created_at, tags, urgency: toUrgency(build), part });

/** After a commit that could not be confirmed, makes all readers reload and queues a pending job. */
export const announceReload = (
  { topics, builds, snapshots }: Deps,
  before: WorkspaceState | undefined,
  found: WorkspaceState,
): void => {
  const { workspace, job, agent_ids } = found;
  const { id, version, latest_build_id, owner_id, part } = workspace;
  for (const agent_id of before?.agent_ids ?? [])
    if (!agent_ids.includes(agent_id)) topics.publish("agent_gone", agent_id, {});
  topics.publish("job", job.id, { logs: [], done: !isActive(job) });
  if (before && before.job.id !== job.id) topics.publish("job", before.job.id, { logs: [], done: true });
  topics.publish("access_changed", id, {});
  topics.publish("workspace", id, { version, latest_build_id });
  topics.publish("notified", owner_id, {});
  const status = toJobStatus(job);
  if (status === "canceling") builds.cancel(job.id);
  if (status === "pending") submit(builds, found, job.id);
  if (found.capturing) snapshots.capture({ workspace_id: id, owner_id, part, ...found.capturing });
};

/** Builds requested by people go before those of prebuilds (facts/platform 2.1). */
export const toUrgency = ({ initiator_id }: { readonly initiator_id: string }): Urgency =>
  initiator_id === PREBUILDS_USER_ID ? "background" : "person";

/** Adds statements to a change. Returns other decisions unchanged. */
export const withExtraWrites = <D extends Decision>(decision: D, extraWrites: readonly Statement[]): D =>
  decision.kind === "change" ? ({ ...decision, writes: [...decision.writes, ...extraWrites] } as D) : decision;

/** Throws 409 for a commit that failed because the owner already has a workspace of this name. Throws other errors unchanged. */
export const throwNameTaken = (error: unknown): never => {
  const constraint = (error as { constraint?: unknown }).constraint;
  if (constraint !== "workspaces_name") throw error;
  throw conflict("A workspace with this name already exists.", [{ field: "name", detail: "must be unique" }]);
};
