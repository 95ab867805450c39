// Applies the template's snapshot policy to a stop: decides whether the stop ends with a snapshot, and which older snapshots to delete.
// Only reads the store. Called inside a message of the workspace.
import { uuid } from "#base/ids.ts";
import type { Store } from "#db/engine/store.ts";
import { findTemplateEvenDeleted } from "#db/templates/templates.ts";
import { findTemplateVersion } from "#db/templates/versions.ts";
import { findJob } from "#db/workspaces/jobs.ts";
import { listRestoring, listSnapshots } from "#db/workspaces/snapshots.ts";
import { findSnapshotProblem, MAX_SNAPSHOTS } from "#schema/workspaces/snapshot.ts";
import { isForBuiltIn } from "#src/provisioners/external/tags.ts";
import type { StopSnapshot, WorkspaceState } from "./decision.ts";
import { countKept, selectOutdated } from "./snapshot-rows.ts";

/** Returns the snapshot to begin after this build; none for a restart, a restore, or a stop of a workspace that was not running. */
export const planStopSnapshot = async (store: Store, state: WorkspaceState): Promise<{ snapshot?: StopSnapshot }> => {
  const { workspace, build } = state;
  const isPlainStop = build.transition === "stop" && build.followed_by === null && build.restored_snapshot_id === null;
  if (!isPlainStop || state.agent_ids.length === 0 || !isForBuiltIn(state.tags)) return {};
  const template = await store.get(findTemplateEvenDeleted({ id: workspace.template_id }));
  const job = await store.get(findJob({ id: build.job_id }));
  const keep = template?.snapshots_on_stop ?? 0;
  const version = await store.get(findTemplateVersion({ id: build.template_version_id }));
  if (keep <= 0 || !job || !version || findSnapshotProblem(job.provisioner, version) !== undefined) return {};
  const existing = await store.all(listSnapshots({ workspace_id: workspace.id }));
  const restoring = (await store.all(listRestoring({ workspace_id: workspace.id }))).map(({ id }) => id);
  const outdated = selectOutdated(existing, keep, restoring);
  const remainingCount = countKept(existing) - outdated.length;
  if (remainingCount >= MAX_SNAPSHOTS) return {};
  return { snapshot: { snapshot_id: uuid(), provisioner: job.provisioner, outdated } };
};
