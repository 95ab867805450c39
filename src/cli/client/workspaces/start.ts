// `slipway workspaces start WORKSPACE [--update] [--parameter NAME=VALUE]…`: starts a workspace and waits until it runs.
import { VerbFailure } from "../../failure.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { finishBuild, readStart, requestBuild } from "./build.ts";
import { shouldWaitForReady, waitUntilReady } from "./ready.ts";

export const run: RunVerb = async (input) => {
  const { findWorkspace, value, has, toBody } = readStart(input);
  return withServer("workspaces start", input, value, async (remote) => {
    const workspace = await findWorkspace(remote.client);
    const build = await requestBuild(remote.client, workspace, {
      transition: "start",
      ...toBody(workspace),
    });
    if (build) return finishBuild(input, remote, workspace, build, has);
    const state = has["no-wait"] ? "was already started" : "is already running";
    if (!has["no-wait"] && shouldWaitForReady(input)) {
      const { problem } = await waitUntilReady(input, remote, workspace);
      if (problem !== "") throw new VerbFailure(`${workspace.name} was already started, but ${problem}`);
    }
    input.print(has.json ? JSON.stringify(workspace) : `${workspace.name} ${state}.`);
    return EXIT.ok;
  });
};
