// Waits for agents to connect and start scripts to finish in a workspace whose build has ended.
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import type { Build } from "#schema/workspaces/build.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Progress } from "../../progress.ts";
import { toPlainLine } from "../../text.ts";
import type { VerbInput } from "../../verb.ts";
import { type Remote, readMessages } from "../remote.ts";
import { listAgents } from "./find.ts";

type WatchMessage = { type: string; data: Workspace };

/** The build, and the reason why the workspace is not usable: empty if all of its agents are ready. */
export type BuildOutcome = { build: Build; problem: string };

/**
 * Returns whether a person at a shell runs the command. Programs such as editor plug-ins keep their session in a separate folder. They
 * follow the agents themselves and open a workspace even if its start scripts failed, so their start ends with its build.
 */
export const shouldWaitForReady = ({ configFolder }: Pick<VerbInput, "configFolder">): boolean =>
  configFolder === undefined;

/** Waits until each agent is ready or has failed. Ctrl-C stops waiting. */
export const waitUntilReady = async (
  input: VerbInput,
  { client, onInterrupt }: Pick<Remote, "client" | "onInterrupt">,
  { id, name }: Pick<Workspace, "id" | "name">,
): Promise<BuildOutcome> => {
  using progress = new Progress(input);
  let waitReason = "";
  onInterrupt(() => {
    progress[Symbol.dispose]();
    input.printError(`No longer waiting: ${name} was started; ${waitReason}.\n`);
  });
  let latest: Build | undefined;
  for await (const { type, data } of readMessages<WatchMessage>(client, `/api/v2/workspaces/${id}/watch-ws`)) {
    if (type !== "data") continue;
    latest = data.latest_build;
    if (latest.status !== "running") return { build: latest, problem: `it is now ${latest.status}` };
    const agents = listAgents(data);
    const pending = agents.find((agent) => toReadiness(agent) === "pending");
    if (!pending)
      return { build: latest, problem: agents.map((agent) => formatFailure(agent, name)).find(Boolean) ?? "" };
    waitReason =
      pending.status === "connected"
        ? `startup scripts of its agent ${toPlainLine(pending.name)} are still running`
        : `its agent ${toPlainLine(pending.name)} is still connecting`;
    progress.setStatus(`${name} was started; ${waitReason}`);
  }
  return { build: latest ?? (await client.get(`/api/v2/workspaces/${id}`)).latest_build, problem: "it was deleted" };
};

const toReadiness = ({
  status,
  lifecycle_state,
  startup_script_behavior,
}: WorkspaceAgent): "pending" | "ready" | "failed" => {
  if (status === "timeout" || status === "disconnected") return "failed";
  if (status !== "connected") return "pending";
  if (lifecycle_state === "start_error" || lifecycle_state === "start_timeout") return "failed";
  const isStarting = lifecycle_state === "created" || lifecycle_state === "starting";
  return isStarting && startup_script_behavior === "blocking" ? "pending" : "ready";
};

const formatFailure = (agent: WorkspaceAgent, workspace: string): string => {
  if (toReadiness(agent) !== "failed") return "";
  const subject = `its agent ${toPlainLine(agent.name)}`;
  const logs = `\`slipway logs ${workspace}\` shows its output.`;
  if (agent.status === "timeout") {
    return `${subject} did not connect within ${agent.connection_timeout_seconds} s. ${logs} ${agent.troubleshooting_url}`.trim();
  }
  if (agent.status === "disconnected") return `${subject} has disconnected. ${logs}`;
  return `startup scripts of ${subject} ${agent.lifecycle_state === "start_timeout" ? "timed out" : "failed"}. ${logs}`;
};
