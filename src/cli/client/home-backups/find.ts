// Finds home backups by ID, ID prefix, or nothing for the newest.
import type { HomeBackup, HomeBackups } from "#schema/workspaces/home-backup.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { VerbFailure } from "../../failure.ts";
import { toPlainLine } from "../../text.ts";
import { readMessages } from "../remote.ts";

type WorkspaceId = Pick<Workspace, "id">;

export const listHomeBackups = (client: Client, { id }: WorkspaceId): Promise<HomeBackups> =>
  client.get(`/api/v2/workspaces/${id}/home-backups`);

/** Returns the backup that `wanted` names, or the newest that can be restored. */
export const findHomeBackup = async (client: Client, workspace: Workspace, wanted?: string): Promise<HomeBackup> => {
  const { backups } = await listHomeBackups(client, workspace);
  const list = `\`slipway home-backups list ${workspace.name}\` lists them.`;
  if (wanted === undefined) {
    const newest = backups.find(({ status, error }) => status === "ready" && error === "");
    if (!newest) throw new VerbFailure(`${workspace.name} has no backup that can be restored. ${list}`);
    return newest;
  }
  const [found, more] = backups.filter(({ id }) => id.startsWith(wanted.toLowerCase()));
  if (!found) throw new VerbFailure(`${workspace.name} has no backup ${toPlainLine(wanted)}. ${list}`);
  if (more)
    throw new VerbFailure(`several backups of ${workspace.name} match ${toPlainLine(wanted)}; use an ID. ${list}`);
  return found;
};

/** Waits until the backup is complete or has failed. */
export const waitForHomeBackup = async (
  client: Client,
  workspace: WorkspaceId,
  backup: HomeBackup,
): Promise<HomeBackup> => {
  // The workspace's stream sends a message when the snapshot for the backup exists, and when it is removed afterwards.
  for await (const _ of readMessages(client, `/api/v2/workspaces/${workspace.id}/watch-ws`)) {
    const found = (await listHomeBackups(client, workspace)).backups.find(({ id }) => id === backup.id);
    if (!found) throw new VerbFailure("The backup was deleted.");
    if (found.status !== "creating") return found;
  }
  throw new VerbFailure("The workspace was deleted.");
};
