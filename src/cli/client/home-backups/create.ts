// `slipway home-backups create WORKSPACE`: backs up the workspace's files and waits for the result.
import { formatSize } from "#base/format-size.ts";
import { readArguments } from "../../arguments.ts";
import { VerbFailure } from "../../failure.ts";
import { toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { selectWorkspace } from "../workspaces/find.ts";
import { waitForHomeBackup } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { switches: ["no-wait"] });
  const findWorkspace = selectWorkspace(input, words);
  return withServer("home-backups create", input, value, async ({ client }) => {
    const workspace = await findWorkspace(client);
    const created = await client.post(`/api/v2/workspaces/${workspace.id}/home-backups`);
    const backup = has["no-wait"] ? created : await waitForHomeBackup(client, workspace, created);
    if (backup.status === "failed") throw new VerbFailure(`The backup failed: ${toPlainLine(backup.error)}`);
    const name = backup.id.slice(0, 8);
    const state =
      backup.status === "ready"
        ? `Backup ${name} is in ${toPlainLine(backup.location)}: ${formatSize(backup.bytes)}, of which ${formatSize(backup.added_bytes)} new.`
        : `Backup ${name} is being created.`;
    input.print(has.json ? JSON.stringify(backup) : state);
  });
};
