// `slipway workspaces restart WORKSPACE`: stops and starts a workspace, and waits until it runs. A stopped one is only started. The server
// performs both, even if the client stops waiting.
import type { Build, RestartWorkspace } from "#schema/workspaces/build.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { VerbFailure } from "../../failure.ts";
import { toPlainLine } from "../../text.ts";
import { EXIT, type RunVerb, type VerbInput } from "../../verb.ts";
import { type Remote, withServer } from "../remote.ts";
import { type FinishOptions, finishBuild, readStart, requestRestart, waitForBuild } from "./build.ts";

export const run: RunVerb = async (input) => {
  const { findWorkspace, value, has, toBody } = readStart(input);
  return withServer("workspaces restart", input, value, async (remote) => {
    const workspace = await findWorkspace(remote.client);
    return restartWorkspace(input, remote, workspace, toBody(workspace), has);
  });
};

/** Restarts a workspace, or starts a stopped one, and waits unless the flags say otherwise. Returns the exit code. */
export const restartWorkspace = async (
  input: VerbInput,
  remote: Remote,
  workspace: Workspace,
  body: RestartWorkspace,
  has: FinishOptions,
): Promise<number> => {
  const first = await requestRestart(remote.client, workspace, body);
  const finish = first.transition === "start" ? finishBuild : finishRestart;
  return finish(input, remote, workspace, first, has);
};

/** Waits for a stop and the start that follows it, unless the flags say otherwise. Returns the exit code. */
export const finishRestart = async (
  input: VerbInput,
  remote: Remote,
  workspace: Workspace,
  first: Build,
  has: FinishOptions,
): Promise<number> => {
  if (has["no-wait"]) {
    if (has.json) input.print(JSON.stringify({ ...workspace, latest_build: first }));
    else
      input.print(`${workspace.name} is restarting. \`slipway workspaces show ${workspace.name}\` shows its progress.`);
    return EXIT.ok;
  }
  const { job } = await waitForBuild(input, remote, workspace.name, first);
  if (job.status !== "succeeded") {
    throw new VerbFailure(`stopping ${workspace.name} failed${job.error ? `: ${toPlainLine(job.error)}` : ""}`);
  }
  // The server starts this build at the moment when the workspace has stopped.
  const restarted = await remote.client.get(`/api/v2/workspaces/${workspace.id}`);
  if (restarted.latest_build.transition !== "start") {
    throw new VerbFailure(`someone else changed ${workspace.name} while it was restarting`);
  }
  return finishBuild(input, remote, restarted, restarted.latest_build, has);
};
