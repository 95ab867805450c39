// `slipway workspaces stop WORKSPACE`: stops a workspace and waits until it has stopped.
import { readArguments } from "../../arguments.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { finishBuild, requestBuild } from "./build.ts";
import { selectWorkspace } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { switches: ["no-wait"] });
  const findWorkspace = selectWorkspace(input, words);
  return withServer("workspaces stop", input, value, async (remote) => {
    const workspace = await findWorkspace(remote.client);
    const build = await requestBuild(remote.client, workspace, { transition: "stop" });
    if (build) return finishBuild(input, remote, workspace, build, has);
    input.print(has.json ? JSON.stringify(workspace) : `${workspace.name} is already stopped.`);
    return EXIT.ok;
  });
};
