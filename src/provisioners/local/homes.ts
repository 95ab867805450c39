// Takes and restores snapshots of local workspaces. A snapshot is a copy of the home in the workspace's folder, which only the server can
// access.
import { existsSync, lstatSync, mkdirSync, renameSync } from "node:fs";
import type { Clock } from "#base/clock.ts";
import { failpoint } from "#base/failpoint.ts";
import { log } from "#base/log.ts";
import type { SnapshotMethod } from "#schema/workspaces/snapshot.ts";
import type { CaptureResult, Homes, PackedFiles, SnapshotRef } from "../homes.ts";
import { ProvisionError } from "../provisioner.ts";
import { WorkspaceFolder } from "./folder.ts";
import { freeze } from "./freeze.ts";
import {
  chooseMethod,
  copyHome,
  type FileOwner,
  measureCopy,
  measureTree,
  readCopy,
  readMethod,
  removeTree,
  syncToDisk,
  unpackHome,
  writeCopy,
} from "./home-files.ts";

export class LocalHomes implements Homes {
  readonly #root: string;
  readonly #clock: Clock;

  /** `root` is <data_dir>/workspaces. */
  constructor(root: string, clock: Clock) {
    this.#root = root;
    this.#clock = clock;
  }

  async method(workspace_id: string): Promise<SnapshotMethod> {
    const folder = this.#toFolder(workspace_id);
    return existsSync(folder.home) ? chooseMethod(folder.home, folder.path) : "archive";
  }

  async capture({ workspace_id, snapshot_id }: SnapshotRef, signal: AbortSignal): Promise<CaptureResult> {
    const folder = this.#toFolder(workspace_id);
    const snapshotFolder = folder.toSnapshotPath(snapshot_id);
    const storedMethod = readMethod(snapshotFolder);
    if (storedMethod) return { method: storedMethod, bytes: await measureCopy(snapshotFolder) };
    if (!existsSync(folder.home)) throw new ProvisionError("The workspace has no files yet. Start it once first.");
    const method = await chooseMethod(folder.home, folder.path);
    const user = findUser(folder.home);
    await removeDrafts(folder, snapshot_id);
    const draft = folder.createDraft(snapshot_id, method === "reflink" ? user : undefined);
    try {
      const frozen = await freeze(folder.home, this.#clock);
      try {
        failpoint("snapshot_frozen");
        await copyHome(method, { home: folder.home, to: draft, as: user }, signal);
      } finally {
        await frozen.thaw();
      }
      folder.closeDraft(draft);
      const bytes = await measureCopy(draft);
      await syncToDisk(draft);
      failpoint("snapshot_copied");
      renameSync(draft, snapshotFolder);
      await syncToDisk(folder.snapshots);
      failpoint("snapshot_made");
      return { method, bytes };
    } catch (error) {
      await removeTree(draft).catch(() => {});
      throw error;
    }
  }

  async pack<T>(
    { workspace_id, snapshot_id }: SnapshotRef,
    signal: AbortSignal,
    use: (packed: PackedFiles) => Promise<T>,
  ): Promise<T> {
    const stream = readCopy(this.#toFolder(workspace_id).toSnapshotPath(snapshot_id), signal);
    return use({ volumes: [], stream });
  }

  async unpack(
    { workspace_id, snapshot_id }: SnapshotRef,
    packed: PackedFiles,
    signal: AbortSignal,
  ): Promise<CaptureResult> {
    const folder = this.#toFolder(workspace_id);
    const snapshotFolder = folder.toSnapshotPath(snapshot_id);
    const storedMethod = readMethod(snapshotFolder);
    if (storedMethod) return { method: storedMethod, bytes: await measureCopy(snapshotFolder) };
    folder.prepare();
    await removeDrafts(folder, snapshot_id);
    const draft = folder.createDraft(snapshot_id);
    try {
      await writeCopy(draft, packed.stream, signal);
      const bytes = await measureCopy(draft);
      await syncToDisk(draft);
      failpoint("home_backup_fetched");
      renameSync(draft, snapshotFolder);
      await syncToDisk(folder.snapshots);
      return { method: "archive", bytes };
    } catch (error) {
      await removeTree(draft).catch(() => {});
      throw error;
    }
  }

  async discard({ workspace_id, snapshot_id }: SnapshotRef): Promise<void> {
    const folder = this.#toFolder(workspace_id);
    if (!folder.exists) return;
    await removeDrafts(folder, snapshot_id);
    await removeTree(folder.toSnapshotPath(snapshot_id));
  }

  /** Returns true if the snapshot is a btrfs subvolume, from which a home can be created instantly. */
  isSubvolume({ workspace_id, snapshot_id }: SnapshotRef): boolean {
    return readMethod(this.#toFolder(workspace_id).toSnapshotPath(snapshot_id)) === "btrfs";
  }

  /** Replaces the workspace's files by those of a snapshot. The workspace must have no processes. On failure, it keeps its files. */
  async restore(workspace_id: string, from: SnapshotRef, signal: AbortSignal): Promise<void> {
    const folder = this.#toFolder(workspace_id);
    const copy = this.#toFolder(from.workspace_id).toSnapshotPath(from.snapshot_id);
    const user = findUser(folder.home);
    await removeDrafts(folder, from.snapshot_id);
    // An archive is unpacked as the workspace's user. The server itself copies a tree, in a folder that no other user can access.
    const draft = folder.toDraftPath(from.snapshot_id, user && readMethod(copy) === "archive" ? "user" : "server");
    mkdirSync(folder.snapshots, { recursive: true, mode: 0o700 });
    try {
      await unpackHome(copy, draft, { as: user, signal });
      const oldHome = folder.replaceHome(draft);
      await syncToDisk(folder.path);
      if (oldHome) await this.#removeOldHome(oldHome);
    } catch (error) {
      await removeTree(draft).catch(() => {});
      throw error;
    }
  }

  /** Returns the size of everything stored for a workspace. */
  measure(workspace_id: string): Promise<number> {
    return measureTree(this.#toFolder(workspace_id).path);
  }

  /** Finishes or undoes a restore that a crash has interrupted. */
  async settle(workspace_id: string): Promise<void> {
    const oldHome = this.#toFolder(workspace_id).finishReplacement();
    if (oldHome) await this.#removeOldHome(oldHome);
  }

  /** Never rejects, because the workspace has its files even if the old home cannot be removed. */
  #removeOldHome(oldHome: string): Promise<void> {
    return removeTree(oldHome).catch((error) =>
      log("local").warn("{former} stays: {error}", { former: oldHome, error }),
    );
  }

  #toFolder(workspace_id: string): WorkspaceFolder {
    return new WorkspaceFolder(this.#root, workspace_id);
  }
}

const removeDrafts = async (folder: WorkspaceFolder, snapshot_id: string): Promise<void> => {
  for (const writer of ["server", "user"] as const) await removeTree(folder.toDraftPath(snapshot_id, writer));
};

/** Returns the owner of the home, if that is another user and the server can run programs as that user. */
const findUser = (home: string): FileOwner | undefined => {
  const { uid = 0, gid = 0 } = lstatSync(home, { throwIfNoEntry: false }) ?? {};
  return process.geteuid?.() === 0 && uid !== 0 ? { uid, gid } : undefined;
};
