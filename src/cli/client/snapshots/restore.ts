// `slipway snapshots restore WORKSPACE SNAPSHOT`: replaces the workspace's files, and waits for the required builds.
import { readArguments } from "../../arguments.ts";
import { requireConfirmable, requireConfirmation } from "../../missing-arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { finishBuild } from "../workspaces/build.ts";
import { finishRestart } from "../workspaces/restart.ts";
import { selectSnapshot } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { switches: ["no-wait", "yes"], short: { y: "yes" } });
  const requested = selectSnapshot(words);
  requireConfirmable(input, has.yes, "restored");
  return withServer("snapshots restore", input, value, async (remote) => {
    const { client } = remote;
    const { workspace, snapshot } = await requested(client);
    if (!has.yes)
      await requireConfirmation(input, `Replace all files of ${workspace.name} with those of ${snapshot.created_at}?`);
    const build = await client.post(`/api/v2/workspaces/${workspace.id}/snapshots/${snapshot.id}/restore`);
    const follow = workspace.latest_build.status === "running" ? finishRestart : finishBuild;
    return follow(input, remote, workspace, build, has);
  });
};
