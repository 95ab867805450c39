// Waiting for an agent of a workspace to be there, for the verbs that need one.
import type { Workspace } from "#schema/workspace.ts";
import { VerbFailure } from "../../failure.ts";
import { Progress } from "../../progress.ts";
import { plain } from "../../text.ts";
import type { VerbInput } from "../../verb.ts";
import { messagesOf, type Remote } from "../remote.ts";
import { agentsOf } from "./find.ts";

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
  for await (const { type, data } of messagesOf<Watched>(client, `/api/v2/workspaces/${id}/watch-ws`)) {
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
  const agents = agentsOf(workspace);
  const names = agents.map(({ name }) => plain(name)).join(", ");
  const found = agentName === undefined ? agents : agents.filter(({ name }) => name === agentName);
  const [first, more] = found;
  if (agents.length === 0) throw new VerbFailure(`${workspace.name} has no agent to open a terminal at`);
  if (!first) throw new VerbFailure(`${workspace.name} has no agent ${agentName}; it has ${names}`);
  if (more) throw new VerbFailure(`say which agent, as ${workspace.name}.AGENT: ${names}`);
  return first;
};
