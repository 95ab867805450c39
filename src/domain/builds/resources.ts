// The resources of builds with their agents. A build has resources only once it has succeeded.
import { toRfc3339 } from "#base/clock.ts";
import { listResources, listResourcesByJobs, type ResourceRow } from "#db/workspaces/resources.ts";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import { type JobFacts, toJobStatus } from "#schema/workspaces/job.ts";
import type { Resource } from "#schema/workspaces/resource.ts";
import { type AgentView, presentAgents } from "../agents/present.ts";

type Job = JobFacts & { readonly id: string };

/** Returns resources by job ID; jobs that have not succeeded have no entry. */
export const loadResources = async (view: AgentView, jobs: readonly Job[]): Promise<Map<string, Resource[]>> => {
  const { store } = view;
  const [first, ...rest] = jobs.filter((job) => toJobStatus(job) === "succeeded").map(({ id }) => id);
  const byJob = new Map<string, Resource[]>();
  if (first === undefined) return byJob;
  const rows =
    rest.length === 0
      ? await store.all(listResources({ job_id: first }))
      : await store.all(listResourcesByJobs({ job_ids: JSON.stringify([first, ...rest]) }));
  if (rows.length === 0) return byJob;
  const agents = await presentAgents(
    view,
    rows.map(({ id }) => id),
  );
  for (const row of rows) {
    const list = byJob.get(row.job_id) ?? [];
    list.push(presentResource(row, agents.get(row.id) ?? []));
    byJob.set(row.job_id, list);
  }
  return byJob;
};

const presentResource = (row: ResourceRow, agents: WorkspaceAgent[]): Resource => ({
  id: row.id,
  created_at: toRfc3339(row.created_at),
  job_id: row.job_id,
  workspace_transition: row.transition as Resource["workspace_transition"],
  type: row.type,
  name: row.name,
  hide: row.hide,
  icon: row.icon,
  agents,
  metadata: row.metadata.map(({ key, value, sensitive }) => ({ key, value: sensitive ? "" : value, sensitive })),
  daily_cost: row.daily_cost,
});
