// `slipway snapshots delete WORKSPACE SNAPSHOT [--yes]`: deletes a snapshot. Its files are removed in the background.
import { readArguments } from "../../arguments.ts";
import { requireConfirmable, requireConfirmation } from "../../missing-arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { selectSnapshot } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { switches: ["yes"], short: { y: "yes" } });
  const requested = selectSnapshot(words);
  requireConfirmable(input, has.yes);
  return withServer("snapshots delete", input, value, async ({ client }) => {
    const { workspace, snapshot } = await requested(client);
    const question = `Delete the snapshot of ${workspace.name} (${snapshot.created_at})? It can't be recovered.`;
    if (!has.yes) await requireConfirmation(input, question);
    await client.delete(`/api/v2/workspaces/${workspace.id}/snapshots/${snapshot.id}`);
    input.print(has.json ? JSON.stringify(snapshot) : `Snapshot ${snapshot.id.slice(0, 8)} is deleted.`);
  });
};
