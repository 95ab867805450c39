// The manifest of a home backup: one encrypted object, written last. A backup without a manifest does not exist.
import { isUuid } from "#base/ids.ts";
import type { HomeBackupEngine } from "#schema/workspaces/home-backup.ts";
import { HomeBackupError } from "./error.ts";
import type { Keys } from "./keys.ts";
import type { BackupStorage } from "./storage.ts";

const FORMAT = 1;
/** Maximum size of a manifest, enough for the chunk names of several terabytes. */
const MAX_MANIFEST_BYTES = 512 * 1024 * 1024;

/** The workspace and its owner, so that people on another machine can recognize the backup. */
export type HomeDetails = {
  readonly workspace_id: string;
  readonly workspace_name: string;
  readonly owner_name: string;
  /** The provisioner of the workspace. It can create a snapshot from the files. */
  readonly provisioner: string;
  /** Names of Docker volumes, each a folder of the archive; empty for a home. */
  readonly volumes: readonly string[];
};

export type Manifest = HomeDetails & {
  readonly id: string;
  /** Time of the snapshot, milliseconds since 1970. */
  readonly created_at: number;
  readonly engine: HomeBackupEngine;
  /** Size of the tar archive. */
  readonly bytes: number;
  readonly sha256: string;
  /** Bytes that this backup added to the storage: before compression for restic, after compression for archives. */
  readonly added_bytes: number;
  /** Names of the archive's chunks in order. */
  readonly chunks?: readonly string[];
  /** restic's own ID. */
  readonly restic_snapshot?: string;
};

const toFolder = (workspace_id: string): string => `${workspace_id}/backups/`;

/** Writes the manifest, which completes the backup. */
export const writeManifest = async (storage: BackupStorage, keys: Keys, manifest: Manifest): Promise<void> => {
  const name = toFolder(manifest.workspace_id) + manifest.id;
  const text = JSON.stringify(Object.assign({ format: FORMAT }, manifest));
  await storage.put(name, await keys.seal(new TextEncoder().encode(text), name));
};

/** Returns the manifest; undefined if it is missing. Throws HomeBackupError. */
export const readManifest = async (
  storage: BackupStorage,
  keys: Keys,
  workspace_id: string,
  id: string,
): Promise<Manifest | undefined> => {
  const name = toFolder(workspace_id) + id;
  const sealed = await storage.get(name, MAX_MANIFEST_BYTES);
  if (!sealed) return undefined;
  const parsed = JSON.parse(new TextDecoder().decode(await keys.open(sealed, name, MAX_MANIFEST_BYTES))) as Manifest & {
    readonly format: number;
  };
  if (parsed.format > FORMAT) throw new HomeBackupError("The backup was created by a newer version of Slipway.");
  const { format: _, ...manifest } = parsed;
  return manifest;
};

export const removeManifest = (storage: BackupStorage, workspace_id: string, id: string): Promise<void> =>
  storage.remove(toFolder(workspace_id) + id);

/** Returns the IDs of a workspace's backups. */
export const listIds = async (storage: BackupStorage, workspace_id: string): Promise<string[]> => {
  const ids: string[] = [];
  for await (const { name } of storage.list(toFolder(workspace_id))) {
    const id = name.slice(toFolder(workspace_id).length);
    if (isUuid(id)) ids.push(id);
  }
  return ids;
};

/** Returns the workspaces that have backups. */
export const listWorkspaces = async (storage: BackupStorage): Promise<string[]> => {
  const workspaceIds = new Set<string>();
  for await (const { name } of storage.list("")) {
    const [workspace_id = "", kind] = name.split("/");
    if (kind === "backups" && isUuid(workspace_id)) workspaceIds.add(workspace_id);
  }
  return [...workspaceIds];
};
