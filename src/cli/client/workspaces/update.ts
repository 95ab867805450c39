// `slipway update WORKSPACE`: updates a workspace to the active version of its template, and restarts it if it runs.
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { readStart } from "./build.ts";
import { restartWorkspace } from "./restart.ts";

export const run: RunVerb = async (input) => {
  const { findWorkspace, value, has, toValues } = readStart(input);
  return withServer("update", input, value, async (remote) => {
    const workspace = await findWorkspace(remote.client);
    const { name, outdated, template_active_version_id } = workspace;
    const body = toValues();
    if (!outdated && Object.keys(body).length === 0) {
      input.print(has.json ? JSON.stringify(workspace) : `${name} already uses the active version of its template.`);
      return EXIT.ok;
    }
    return restartWorkspace(
      input,
      remote,
      workspace,
      { ...body, template_version_id: template_active_version_id },
      has,
    );
  });
};
