// Waiting for an agent of a workspace to be there, for the verbs that need one.
import type { CALLER_REASONS } from "#schema/workspaces/build.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { VerbFailure } from "../../failure.ts";
import { Progress } from "../../progress.ts";
import { plain } from "../../text.ts";
import type { VerbInput } from "../../verb.ts";
import { type Remote, readMessages } from "../remote.ts";
import { askForBuild, awaitBuild } from "./build.ts";
import { listAgents, splitName, workspaceNamed } from "./find.ts";

/** Whether a workspace that is stopped is started, and why. */
export type Starting = {
  readonly mayStart?: boolean | undefined;
  readonly reason?: (typeof CALLER_REASONS)[number] | undefined;
};

/** The agent that `WORKSPACE[.AGENT]` names, connected; a stopped workspace is started. Throws VerbFailure. */
export const startedAgent = async (
  input: VerbInput,
  remote: Pick<Remote, "client" | "onInterrupt">,
  name: string,
  { mayStart = true, reason = "ssh_connection" }: Starting = {},
): Promise<{ workspace: Workspace; agent_id: string }> => {
  const [own, agentName] = splitName(name);
  const workspace = await workspaceNamed(remote.client, own);
  if (workspace.latest_build.status === "stopped") {
    if (!mayStart) throw new VerbFailure(`${own} is stopped. Start it with \`slipway start ${own}\`.`);
    const build = await askForBuild(remote.client, workspace, { transition: "start", reason });
    if (build) await awaitBuild(input, remote, own, build);
  } else if (workspace.latest_build.status === "running") {
    // What is there needs no watching: someone waits for a prompt.
    const [agent, more] = listAgents(workspace).filter((one) => agentName === undefined || one.name === agentName);
    if (agent?.status === "connected" && !more) return { workspace, agent_id: agent.id };
  }
  return { workspace, agent_id: await readyAgent(input, remote, workspace, agentName) };
};

type Watched = { type: string; data: Workspace };

/** The id of the agent of that name, else of the only one, once it is connected. Throws VerbFailure when it will not be. */
export const readyAgent = async (
  input: VerbInput,
  { client, onInterrupt }: Pick<Remote, "client" | "onInterrupt">,
  { id, name }: Workspace,
  agentName: string | undefined,
): Promise<string> => {
  using progress = new Progress(input);
  onInterrupt(() => progress[Symbol.dispose]());
  for await (const { type, data } of readMessages<Watched>(client, `/api/v2/workspaces/${id}/watch-ws`)) {
    if (type !== "data") continue;
    const { status, job } = data.latest_build;
    if (!["pending", "starting", "running"].includes(status)) {
      throw new VerbFailure(`${name} is ${status}${job.error ? `: ${plain(job.error)}` : ""}`);
    }
    if (status !== "running") {
      progress.status(`${name} is ${status}`);
      continue;
    }
    const agent = chosen(data, agentName);
    if (agent.status === "connected") return agent.id;
    if (agent.status === "timeout") {
      throw new VerbFailure(
        `the agent ${agent.name} of ${name} has not connected in time ${agent.troubleshooting_url}`.trim(),
      );
    }
    progress.status(`waiting for the agent ${plain(agent.name)} of ${name}`);
  }
  throw new VerbFailure(`${name} is gone`);
};

const chosen = (workspace: Workspace, agentName: string | undefined) => {
  const agents = listAgents(workspace);
  const names = agents.map(({ name }) => plain(name)).join(", ");
  const found = agentName === undefined ? agents : agents.filter(({ name }) => name === agentName);
  const [first, more] = found;
  if (agents.length === 0) throw new VerbFailure(`${workspace.name} has no agent to open a terminal on`);
  if (!first) throw new VerbFailure(`${workspace.name} has no agent ${agentName}; it has ${names}`);
  if (more) throw new VerbFailure(`specify the agent, as ${workspace.name}.AGENT: ${names}`);
  return first;
};
