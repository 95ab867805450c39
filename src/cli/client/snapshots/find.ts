// Finds snapshots by name, ID or ID prefix.
import { usageError } from "#base/usage-error.ts";
import type { Snapshot, Snapshots } from "#schema/workspaces/snapshot.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { VerbFailure } from "../../failure.ts";
import { toPlainLine } from "../../text.ts";
import { readMessages } from "../remote.ts";
import { getWorkspace } from "../workspaces/find.ts";

export const listSnapshots = (client: Client, { id }: Pick<Workspace, "id">): Promise<Snapshots> =>
  client.get(`/api/v2/workspaces/${id}/snapshots`);

/** Parses the workspace and snapshot from the arguments. Throws UsageError before any request. */
export const selectSnapshot = (words: readonly string[]) => {
  const [name, wanted, ...more] = words;
  if (name === undefined || wanted === undefined || more.length > 0) {
    throw usageError("snapshots", "expected a workspace and a snapshot");
  }
  return async (client: Client): Promise<{ workspace: Workspace; snapshot: Snapshot }> => {
    const workspace = await getWorkspace(client, name);
    const { snapshots } = await listSnapshots(client, workspace);
    return { workspace, snapshot: matchSnapshot(snapshots, wanted, workspace.name) };
  };
};

/** Waits until the snapshot is complete or has failed. */
export const waitForSnapshot = async (
  client: Client,
  { id }: Pick<Workspace, "id">,
  snapshot: Snapshot,
): Promise<Snapshot> => {
  const loadSnapshot = async (): Promise<Snapshot | undefined> =>
    (await listSnapshots(client, { id })).snapshots.find((one) => one.id === snapshot.id);
  // The workspace's stream sends a message for every change of its snapshots. The first message contains the current state.
  for await (const { type } of readMessages<{ type: string }>(client, `/api/v2/workspaces/${id}/watch-ws`)) {
    const found = type === "data" ? await loadSnapshot() : snapshot;
    if (!found) throw new VerbFailure("The snapshot was deleted.");
    if (found.status !== "creating") return found;
  }
  throw new VerbFailure("The workspace was deleted.");
};

const matchSnapshot = (snapshots: readonly Snapshot[], wanted: string, workspace: string): Snapshot => {
  const exact = snapshots.filter((one) => one.id === wanted || one.name === wanted);
  const found = exact.length > 0 ? exact : snapshots.filter(({ id }) => id.startsWith(wanted.toLowerCase()));
  const [first, second] = found;
  const list = `\`slipway snapshots list ${workspace}\` lists them.`;
  if (!first) throw new VerbFailure(`${workspace} has no snapshot ${toPlainLine(wanted)}. ${list}`);
  if (second)
    throw new VerbFailure(`several snapshots of ${workspace} match ${toPlainLine(wanted)}; use an ID. ${list}`);
  return first;
};
