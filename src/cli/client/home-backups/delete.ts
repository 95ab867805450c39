// `slipway home-backups delete WORKSPACE BACKUP [--yes]`: deletes a backup. Data that no other backup needs is removed in the background.
import { usageError } from "#base/usage-error.ts";
import { readArguments } from "../../arguments.ts";
import { requireConfirmable, requireConfirmation } from "../../missing-arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { getWorkspace } from "../workspaces/find.ts";
import { findHomeBackup } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { switches: ["yes"], short: { y: "yes" } });
  const [name, wanted, ...more] = words;
  if (name === undefined || wanted === undefined || more.length > 0) {
    throw usageError("home-backups delete", "expected a workspace and a backup");
  }
  requireConfirmable(input, has.yes);
  return withServer("home-backups delete", input, value, async ({ client }) => {
    const workspace = await getWorkspace(client, name);
    const backup = await findHomeBackup(client, workspace, wanted);
    const question = `Delete the backup of ${workspace.name} (${backup.created_at})? It can't be recovered.`;
    if (!has.yes) await requireConfirmation(input, question);
    await client.delete(`/api/v2/workspaces/${workspace.id}/home-backups/${backup.id}`);
    input.print(has.json ? JSON.stringify(backup) : `Backup ${backup.id.slice(0, 8)} is deleted.`);
  });
};
