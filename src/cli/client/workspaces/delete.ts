// `slipway workspaces delete WORKSPACE [--yes]`: deletes a workspace and its contents after confirmation (rule CV-6).
import { readArguments } from "../../arguments.ts";
import { confirmable, confirmByName } from "../../asked.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { askForBuild, finishBuild } from "./build.ts";
import { workspaceAsked } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { switches: ["yes", "orphan", "permanent", "no-wait"] });
  const named = workspaceAsked(input, words);
  confirmable(input, has.yes);
  return withServer("workspaces delete", input, value, async (remote) => {
    const workspace = await named(remote.client);
    const { name } = workspace;
    if (!has.yes) await confirmByName(input, name, `This deletes ${name} and everything in it.`);
    const how = { ...(has.orphan ? { orphan: true } : {}), ...(has.permanent ? { permanent: true } : {}) };
    const build = await askForBuild(remote.client, workspace, { transition: "delete", ...how });
    return build ? finishBuild(input, remote, workspace, build, has) : EXIT.ok;
  });
};
