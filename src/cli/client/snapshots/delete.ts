// `slipway snapshots delete WORKSPACE SNAPSHOT`: its files are removed in the background.
import { readArguments } from "../../arguments.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { askForSnapshot } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  const asked = askForSnapshot(words);
  return withServer("snapshots delete", input, value, async ({ client }) => {
    const { workspace, snapshot } = await asked(client);
    await client.delete(`/api/v2/workspaces/${workspace.id}/snapshots/${snapshot.id}`);
    input.print(has.json ? JSON.stringify(snapshot) : `Snapshot ${snapshot.id.slice(0, 8)} is deleted.`);
    return EXIT.ok;
  });
};
