// `slipway workspaces start WORKSPACE [--update] [--parameter NAME=VALUE]…`: starts it and waits until it runs.
import { pairs, readArguments } from "../../arguments.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { askForBuild, finishBuild } from "./build.ts";
import { workspaceAsked } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, list, has } = readArguments(input.argv, {
    lists: ["parameter"],
    switches: ["update", "no-wait"],
  });
  const named = workspaceAsked(input, words);
  const rich_parameter_values = pairs("--parameter", list.parameter);
  return withServer("workspaces start", input, value, async (remote) => {
    const workspace = await named(remote.client);
    const build = await askForBuild(remote.client, workspace, {
      transition: "start",
      ...(rich_parameter_values.length > 0 ? { rich_parameter_values } : {}),
      ...(has.update && workspace.outdated ? { template_version_id: workspace.template_active_version_id } : {}),
    });
    if (build) return finishBuild(input, remote, workspace, build, has);
    input.print(has.json ? JSON.stringify(workspace) : `${workspace.name} runs already.`);
    return EXIT.ok;
  });
};
