// `slipway workspaces rename WORKSPACE NAME`: renames a workspace, if the server allows it.
import { readArguments, requireNoWords } from "../../arguments.ts";
import { promptIfMissing, takeOneWord } from "../../missing-arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { selectWorkspace } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  const [first, second, ...more] = words;
  requireNoWords(more);
  const findWorkspace = selectWorkspace(input, first === undefined ? [] : [first]);
  const word = takeOneWord(input, second === undefined ? [] : [second], "the new name");
  return withServer("workspaces rename", input, value, async ({ client }) => {
    const before = await findWorkspace(client);
    const name = await promptIfMissing(input, word, `New name of ${before.name}`);
    await client.patch(`/api/v2/workspaces/${before.id}`, { name });
    const workspace = await client.get(`/api/v2/workspaces/${before.id}`);
    input.print(has.json ? JSON.stringify(workspace) : `Renamed ${before.name} to ${workspace.name}.`);
  });
};
