// `slipway open WORKSPACE`: opens a workspace's page in the browser.
import { readArguments } from "../../arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { selectWorkspace } from "../workspaces/find.ts";
import { openInBrowser } from "./browse.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { switches: ["print"] });
  const findWorkspace = selectWorkspace(input, words);
  return withServer("open", input, value, async ({ client }) => {
    const { id } = await findWorkspace(client);
    const link = new URL(`/workspaces/${id}`, client.url).href;
    if (has.json) input.print(JSON.stringify({ link }));
    else if (has.print) input.print(link);
    else await openInBrowser(link);
  });
};
