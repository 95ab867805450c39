// Presents a workspace as a list row, for the stream of all workspaces.
import { agentHealth, agentStatus } from "#actors/agent/status.ts";
import { toOptionalRfc3339, toRfc3339 } from "#base/clock.ts";
import type { SummaryAgent, SummaryRow } from "#db/workspaces/summaries.ts";
import type { AgentSummary, WorkspaceSummary } from "#schema/workspaces/workspace-watch.ts";

const formatTime = (value: unknown): string => toRfc3339(Number(value));
const formatOptionalTime = (value: unknown): string | undefined => toOptionalRfc3339(value as number | null);

const toAgent = (agent: SummaryAgent, now: number): AgentSummary => {
  const status = agentStatus(agent, now);
  const { id, name, lifecycle_state } = agent;
  return { id, name, status, lifecycle_state, healthy: agentHealth(status, lifecycle_state).healthy };
};

/** `now` in milliseconds since 1970 determines the agents' status; favorites are personal to the owner. */
export const presentSummary = (row: SummaryRow, viewer_id: string, now: number): WorkspaceSummary => {
  const agents = JSON.parse(row.agents as string) as SummaryAgent[];
  const shown = agents.map((agent) => toAgent(agent, now));
  const { created_at, build_created_at, last_used_at, deadline, max_deadline, error, ...plain } = row;
  return {
    ...(plain as unknown as WorkspaceSummary),
    created_at: formatTime(created_at),
    build_created_at: formatTime(build_created_at),
    last_used_at: formatTime(last_used_at),
    outdated: row.template_version_id !== row.template_active_version_id,
    error: (error as string | null) || undefined,
    deadline: formatOptionalTime(deadline),
    max_deadline: formatOptionalTime(max_deadline),
    next_start_at: formatOptionalTime(row.next_start_at),
    dormant_at: formatOptionalTime(row.dormant_at),
    deleting_at: formatOptionalTime(row.deleting_at),
    favorite: row.favorite === 1 && row.owner_id === viewer_id,
    shared: row.shared === 1,
    healthy: shown.every(({ healthy }, index) => healthy || agents[index]?.top === 0),
    agents: shown,
  };
};
