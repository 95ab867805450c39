// Determines whether a workspace is ready for use, for example for prompts that wait for it.
import { listAgentsOfBuild } from "#db/agents/agents.ts";
import type { Store } from "#db/engine/store.ts";
import { findWorkspace } from "#db/workspaces/workspaces.ts";
import { agentStatus } from "../agent/status.ts";

/** States of agents that have not finished their start scripts. */
const STARTING_STATES: ReadonlySet<string> = new Set(["created", "starting"]);

/** Returns true if the first agent is connected and has finished its start scripts, even if a script has failed. */
export const isWorkspaceReady = async (
  store: Pick<Store, "get" | "all">,
  workspace_id: string,
  now: number,
): Promise<boolean> => {
  const workspace = await store.get(findWorkspace({ id: workspace_id }));
  if (workspace?.status !== "running" || workspace.dormant_at !== null) return false;
  const agents = await store.all(listAgentsOfBuild({ build_id: workspace.latest_build_id }));
  const agent = agents.find(({ parent_id }) => parent_id === null);
  if (!agent || agentStatus(agent, now) !== "connected") return false;
  return !STARTING_STATES.has(agent.lifecycle_state);
};
