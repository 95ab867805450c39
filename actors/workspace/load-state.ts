// Loads the state that the workspace actor keeps in memory: the workspace, its latest build with the job, and its running agents.
import type { Store } from "#db/engine/store.ts";
import { findBuild } from "#db/workspaces/builds.ts";
import { findJob } from "#db/workspaces/jobs.ts";
import { listSnapshots } from "#db/workspaces/snapshots.ts";
import { findWorkspace } from "#db/workspaces/workspaces.ts";
import { isActive } from "#schema/workspaces/job.ts";
import type { WorkspaceState } from "./decision.ts";
import { findCapturing } from "./snapshot-rows.ts";
import { listRunningAgentIds } from "./timed.ts";

/** Returns undefined when the workspace does not exist. */
export const loadState = async (store: Store, workspace_id: string): Promise<WorkspaceState | undefined> => {
  const workspace = await store.get(findWorkspace({ id: workspace_id }));
  const build = workspace && (await store.get(findBuild({ id: workspace.latest_build_id })));
  const job = build && (await store.get(findJob({ id: build.job_id })));
  if (!workspace || !build || !job) return undefined;
  const { id, key, created_at, updated_at, started_at, canceled_at, completed_at, error, error_code } = job;
  const { worker_id, worker_name, attempts, logs_length, logs_overflowed, timings } = job;
  const snapshots = await store.all(listSnapshots({ workspace_id }));
  const times = { created_at, updated_at, started_at, canceled_at, completed_at };
  const counts = { attempts, logs_length, logs_overflowed };
  return {
    workspace,
    build,
    job: { id, key, ...times, error, error_code, worker_id, worker_name, ...counts },
    tags: job.tags,
    timings,
    agent_ids: build.transition === "start" || isActive(job) ? await listRunningAgentIds(store, workspace_id) : [],
    capturing: findCapturing(snapshots),
  };
};
