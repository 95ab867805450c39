// `slipway workspaces restart WORKSPACE`: stops it and starts it again, and waits until it runs. One that is stopped is only started.
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { pairs, readArguments } from "../../arguments.ts";
import { VerbFailure } from "../../failure.ts";
import { plain } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { askForBuild, awaitBuild, finishBuild } from "./build.ts";
import { workspaceAsked } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, list, has } = readArguments(input.argv, {
    lists: ["parameter"],
    switches: ["update", "no-wait"],
  });
  const named = workspaceAsked(input, words);
  const rich_parameter_values = pairs("--parameter", list.parameter);
  return withServer("workspaces restart", input, value, async (remote) => {
    const workspace = await named(remote.client);
    const stop = await askForBuild(remote.client, workspace, { transition: "stop" });
    if (stop) {
      const { job } = await awaitBuild(input, remote, workspace.name, stop);
      if (job.status !== "succeeded") {
        throw new VerbFailure(`stopping ${workspace.name} has failed${job.error ? `: ${plain(job.error)}` : ""}`);
      }
    }
    const stopped = await remote.client.get<Workspace>(`/api/v2/workspaces/${workspace.id}`);
    const build = await askForBuild(remote.client, stopped, {
      transition: "start",
      ...(rich_parameter_values.length > 0 ? { rich_parameter_values } : {}),
      ...(has.update && stopped.outdated ? { template_version_id: stopped.template_active_version_id } : {}),
    });
    if (!build) throw new VerbFailure(`somebody else has started ${workspace.name} meanwhile`);
    return finishBuild(input, remote, stopped, build, has);
  });
};
