// Reports containers that were killed at their memory limit: on an agent of the workspace and in its log (rule AG-26).
import { log } from "#base/log.ts";
import { listAgentsOfBuild } from "#db/agents/agents.ts";
import { findBuild } from "#db/workspaces/builds.ts";
import { listResources } from "#db/workspaces/resources.ts";
import { findWorkspace } from "#db/workspaces/workspaces.ts";
import type { ContainerKill } from "#src/provisioners/provisioner.ts";
import type { DomainContext } from "../context.ts";

/** Notifies the agent in the container, or else the workspace's first agent. Never rejects. */
export const noteContainerKill = async (ctx: DomainContext, kill: ContainerKill): Promise<void> => {
  const { workspace_id, resource, killed_at } = kill;
  try {
    const workspace = await ctx.store.get(findWorkspace({ id: workspace_id }));
    // Servers can share a Docker engine, and every node sees all its containers, so the workspace may belong to another server or node.
    if (!workspace || workspace.deleted || !ctx.location.isHere(workspace.part)) return;
    const agents = await ctx.store.all(listAgentsOfBuild({ build_id: workspace.latest_build_id }));
    const rootAgents = agents.filter(({ parent_id }) => parent_id === null);
    const resourceId = await findResourceId(ctx, workspace.latest_build_id, resource);
    const agent = rootAgents.find(({ resource_id }) => resource_id === resourceId) ?? rootAgents[0];
    if (!agent) return;
    const process = `container ${resource}`;
    const output = `Out of memory: the kernel killed the ${process}, which reached its memory limit.`;
    const batch_id = `container-kill ${resource} ${killed_at}`;
    await ctx.agents.ask(agent.id, "reportContainerKill", { process, killed_at });
    await ctx.agents.ask(agent.id, "appendLogs", {
      logs: [{ created_at: killed_at, level: "warn", output }],
      batch_id,
    });
  } catch (error) {
    log("docker").warn("cannot show the end of container {resource} of workspace {workspace_id}: {error}", {
      resource,
      workspace_id,
      error,
    });
  }
};

const findResourceId = async (
  { store }: DomainContext,
  build_id: string,
  name: string,
): Promise<string | undefined> => {
  const build = await store.get(findBuild({ id: build_id }));
  if (!build) return undefined;
  return (await store.all(listResources({ job_id: build.job_id }))).find((one) => one.name === name)?.id;
};
