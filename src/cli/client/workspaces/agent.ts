// Waits for an agent of a workspace to connect, for the commands that need one.
import type { Build, CALLER_REASONS } from "#schema/workspaces/build.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { ApiError } from "#src/client.ts";
import { VerbFailure } from "../../failure.ts";
import { Progress } from "../../progress.ts";
import { toPlainLine } from "../../text.ts";
import type { VerbInput } from "../../verb.ts";
import { type Remote, readMessages } from "../remote.ts";
import { waitForBuild } from "./build.ts";
import { getWorkspace, listAgents, splitName } from "./find.ts";

/** Whether the command may start a stopped workspace, and the reason to record. */
export type StartOptions = {
  readonly mayStart?: boolean | undefined;
  readonly reason?: (typeof CALLER_REASONS)[number] | undefined;
};

/** The workspace is stopped, and this connection does not start it. */
export class WorkspaceStoppedError extends VerbFailure {}

/** Returns the connected agent that `WORKSPACE[.AGENT]` names, starting a stopped workspace. Throws VerbFailure. */
export const connectAgent = async (
  input: VerbInput,
  remote: Pick<Remote, "client" | "onInterrupt">,
  name: string,
  { mayStart = true, reason = "ssh_connection" }: StartOptions = {},
): Promise<{ workspace: Workspace; agent_id: string }> => {
  const [workspaceName, agentName] = splitName(name);
  const workspace = await loadAfterStop(input, remote, workspaceName);
  if (workspace.latest_build.status === "stopped") {
    if (!mayStart)
      throw new WorkspaceStoppedError(`${workspaceName} is stopped. Start it with \`slipway start ${workspaceName}\`.`);
    await waitForBuild(input, remote, workspaceName, await startForConnection(remote.client, workspace, reason));
  } else if (workspace.latest_build.status === "running") {
    // An agent that is already connected needs no watch, which saves time.
    const [agent, more] = listAgents(workspace).filter((one) => agentName === undefined || one.name === agentName);
    if (agent?.status === "connected" && !more) return { workspace, agent_id: agent.id };
  }
  return { workspace, agent_id: await waitForAgent(input, remote, workspace, agentName) };
};

/** Returns the named workspace. If it is being stopped, waits for the end of the stop first. */
const loadAfterStop = async (
  input: VerbInput,
  remote: Pick<Remote, "client" | "onInterrupt">,
  name: string,
): Promise<Workspace> => {
  const workspace = await getWorkspace(remote.client, name);
  const { transition, job } = workspace.latest_build;
  if (transition !== "stop" || job.completed_at) return workspace;
  await waitForBuild(input, remote, name, workspace.latest_build);
  return await getWorkspace(remote.client, name);
};

/** Starts the workspace for a connection, once for all concurrent ones. Throws VerbFailure if connections do not start it. */
const startForConnection = (
  client: Remote["client"],
  { id, name }: Workspace,
  reason: StartOptions["reason"],
): Promise<Build> =>
  client.post<Build>(`/api/v2/workspaces/${id}/wake`, { reason }).catch((error: unknown) => {
    if (!(error instanceof ApiError) || error.status !== 409) throw error;
    throw new WorkspaceStoppedError(`${toPlainLine(error.message)} Start it with \`slipway start ${name}\`.`);
  });

type WatchMessage = { type: string; data: Workspace };

/** Returns the ID of the named agent, or of the only one, once it is connected. Throws VerbFailure if it cannot connect. */
export const waitForAgent = async (
  input: VerbInput,
  { client, onInterrupt }: Pick<Remote, "client" | "onInterrupt">,
  { id, name }: Workspace,
  agentName: string | undefined,
): Promise<string> => {
  using progress = new Progress(input);
  onInterrupt(() => progress[Symbol.dispose]());
  for await (const { type, data } of readMessages<WatchMessage>(client, `/api/v2/workspaces/${id}/watch-ws`)) {
    if (type !== "data") continue;
    const { status, job } = data.latest_build;
    if (!["pending", "starting", "running"].includes(status)) {
      throw new VerbFailure(`${name} is ${status}${job.error ? `: ${toPlainLine(job.error)}` : ""}`);
    }
    if (status !== "running") {
      progress.setStatus(`${name} is ${status}`);
      continue;
    }
    const agent = chooseAgent(data, agentName);
    if (agent.status === "connected") return agent.id;
    if (agent.status === "timeout") {
      throw new VerbFailure(
        `the agent ${agent.name} of ${name} did not connect in time ${agent.troubleshooting_url}`.trim(),
      );
    }
    progress.setStatus(`waiting for the agent ${toPlainLine(agent.name)} of ${name}`);
  }
  throw new VerbFailure(`${name} was deleted`);
};

const chooseAgent = (workspace: Workspace, agentName: string | undefined) => {
  const agents = listAgents(workspace);
  const names = agents.map(({ name }) => toPlainLine(name)).join(", ");
  const found = agentName === undefined ? agents : agents.filter(({ name }) => name === agentName);
  const [first, more] = found;
  if (agents.length === 0) throw new VerbFailure(`${workspace.name} has no agent to open a terminal on`);
  if (!first) throw new VerbFailure(`${workspace.name} has no agent ${agentName}; it has ${names}`);
  if (more) throw new VerbFailure(`specify the agent, as ${workspace.name}.AGENT: ${names}`);
  return first;
};
