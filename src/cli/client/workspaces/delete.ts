// `slipway workspaces delete WORKSPACE [--yes]`: deletes a workspace and its contents after confirmation (rule CV-6).
import { readArguments } from "../../arguments.ts";
import { confirmByName, requireConfirmable } from "../../missing-arguments.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { finishBuild, requestBuild } from "./build.ts";
import { selectWorkspace } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { switches: ["yes", "orphan", "permanent", "no-wait"] });
  const findWorkspace = selectWorkspace(input, words);
  requireConfirmable(input, has.yes);
  return withServer("workspaces delete", input, value, async (remote) => {
    const workspace = await findWorkspace(remote.client);
    const { name } = workspace;
    if (!has.yes) await confirmByName(input, name, `This deletes ${name} and everything in it.`);
    const options = { ...(has.orphan ? { orphan: true } : {}), ...(has.permanent ? { permanent: true } : {}) };
    const build = await requestBuild(remote.client, workspace, { transition: "delete", ...options });
    return build ? finishBuild(input, remote, workspace, build, has) : EXIT.ok;
  });
};
