// `slipway workspaces restart WORKSPACE`: stops it and starts it again, and waits until it runs. One that is stopped is only started.
// The server does both, also when nobody waits any longer.
import { VerbFailure } from "../../failure.ts";
import { plain } from "../../text.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { askForRestart, awaitBuild, finishBuild, readStart } from "./build.ts";

export const run: RunVerb = async (input) => {
  const { named, value, has, bodyFor } = readStart(input);
  return withServer("workspaces restart", input, value, async (remote) => {
    const workspace = await named(remote.client);
    const first = await askForRestart(remote.client, workspace, bodyFor(workspace));
    if (first.transition === "start") return finishBuild(input, remote, workspace, first, has);
    if (has["no-wait"]) {
      if (has.json) input.print(JSON.stringify({ ...workspace, latest_build: first }));
      else input.print(`${workspace.name} restarts; \`slipway workspaces show ${workspace.name}\` says how far.`);
      return EXIT.ok;
    }
    const { job } = await awaitBuild(input, remote, workspace.name, first);
    if (job.status !== "succeeded") {
      throw new VerbFailure(`stopping ${workspace.name} has failed${job.error ? `: ${plain(job.error)}` : ""}`);
    }
    // The server begins it in the same moment in which the workspace has stopped.
    const restarted = await remote.client.get(`/api/v2/workspaces/${workspace.id}`);
    if (restarted.latest_build.transition !== "start") {
      throw new VerbFailure(`somebody else has changed ${workspace.name} meanwhile`);
    }
    return finishBuild(input, remote, restarted, restarted.latest_build, has);
  });
};
