// Waits for an agent of a workspace to connect, for the commands that need one.
import type { Build, CALLER_REASONS } from "#schema/workspaces/build.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { ApiError } from "#src/client.ts";
import { VerbFailure } from "../../failure.ts";
import { Progress } from "../../progress.ts";
import { plain } from "../../text.ts";
import type { VerbInput } from "../../verb.ts";
import { type Remote, readMessages } from "../remote.ts";
import { awaitBuild } from "./build.ts";
import { listAgents, splitName, workspaceNamed } from "./find.ts";

/** Whether a stopped workspace is started, and the reason to record. */
export type Starting = {
  readonly mayStart?: boolean | undefined;
  readonly reason?: (typeof CALLER_REASONS)[number] | undefined;
};

/** The workspace is stopped, and this connection does not start it. */
export class NotStarted extends VerbFailure {}

/** Returns the connected agent that `WORKSPACE[.AGENT]` names, starting a stopped workspace. Throws VerbFailure. */
export const startedAgent = async (
  input: VerbInput,
  remote: Pick<Remote, "client" | "onInterrupt">,
  name: string,
  { mayStart = true, reason = "ssh_connection" }: Starting = {},
): Promise<{ workspace: Workspace; agent_id: string }> => {
  const [own, agentName] = splitName(name);
  const workspace = await waitUntilStopped(input, remote, own);
  if (workspace.latest_build.status === "stopped") {
    if (!mayStart) throw new NotStarted(`${own} is stopped. Start it with \`slipway start ${own}\`.`);
    await awaitBuild(input, remote, own, await wake(remote.client, workspace, reason));
  } else if (workspace.latest_build.status === "running") {
    // An agent that is already connected needs no watch, which saves time.
    const [agent, more] = listAgents(workspace).filter((one) => agentName === undefined || one.name === agentName);
    if (agent?.status === "connected" && !more) return { workspace, agent_id: agent.id };
  }
  return { workspace, agent_id: await readyAgent(input, remote, workspace, agentName) };
};

/** Returns the named workspace; waits for a running stop. */
const waitUntilStopped = async (
  input: VerbInput,
  remote: Pick<Remote, "client" | "onInterrupt">,
  name: string,
): Promise<Workspace> => {
  const workspace = await workspaceNamed(remote.client, name);
  const { transition, job } = workspace.latest_build;
  if (transition !== "stop" || job.completed_at) return workspace;
  await awaitBuild(input, remote, name, workspace.latest_build);
  return await workspaceNamed(remote.client, name);
};

/** Starts the workspace for a connection, once for all concurrent ones. Throws VerbFailure if connections do not start it. */
const wake = (client: Remote["client"], { id, name }: Workspace, reason: Starting["reason"]): Promise<Build> =>
  client.post<Build>(`/api/v2/workspaces/${id}/wake`, { reason }).catch((error: unknown) => {
    if (!(error instanceof ApiError) || error.status !== 409) throw error;
    throw new NotStarted(`${plain(error.message)} Start it with \`slipway start ${name}\`.`);
  });

type Watched = { type: string; data: Workspace };

/** Returns the ID of the named agent, or of the only one, once it is connected. Throws VerbFailure if it cannot connect. */
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
        `the agent ${agent.name} of ${name} did not connect in time ${agent.troubleshooting_url}`.trim(),
      );
    }
    progress.status(`waiting for the agent ${plain(agent.name)} of ${name}`);
  }
  throw new VerbFailure(`${name} was deleted`);
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
