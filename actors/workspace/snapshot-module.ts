// Handles snapshots that a module of the template has created: sets the variable for a build that restores one, and lists those to delete
// with their workspace. Only reads the store. Called inside a message of the workspace.
import type { Store } from "#db/engine/store.ts";
import { openModuleState, sealSnapshotValue } from "#db/workspaces/snapshot-state.ts";
import { findSnapshot, listSnapshots, type SnapshotRow } from "#db/workspaces/snapshots.ts";
import { readSnapshotOutput } from "#src/provisioners/terraform/snapshot-output.ts";
import type { NewBuild } from "./decision.ts";
import type { PlanDeps } from "./plan.ts";

/** Adds the value of the template's variable to a build that restores a snapshot of a module. */
export const withSnapshotValue = async (
  { store, encryption }: PlanDeps,
  workspace_id: string,
  build: NewBuild,
): Promise<NewBuild> => {
  const { restore } = build;
  const row = restore && (await store.get(findSnapshot({ id: restore.snapshot_id })));
  const created = row && openModuleState(encryption, row.id, row.sealed_state);
  const value = created && readSnapshotOutput(created.state);
  if (restore === undefined || value === undefined) return build;
  return { ...build, restore: { ...restore, sealed_value: sealSnapshotValue(encryption, workspace_id, value) } };
};

/** Returns the snapshots that a module has created. */
export const listMadeSnapshots = async (store: Store, workspace_id: string): Promise<SnapshotRow[]> =>
  (await store.all(listSnapshots({ workspace_id }))).filter(({ sealed_state }) => sealed_state !== "");
