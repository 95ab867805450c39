// Where the files of a workspace's secrets have their content, and the digests of it: in memory, so that no volume, snapshot or backup of the
// workspace's files has them, and a container that was killed takes them along.
import { lstatSync, mkdirSync, rmSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { log } from "../log.ts";

/** Memory that Linux shows as files: of each container its own. */
const SHARED = "/dev/shm";
const TMPFS = 0x01021994;

/** The folder of a workspace, whether it is there or not. The same in each of its containers. */
export const memoryFolder = (workspace_id: string): string => join(SHARED, `slipway-secrets-${workspace_id}`);

/** Makes the folder. False: this system has no such memory, or what stands there can be opened by others. */
export const makeMemoryFolder = (folder: string): boolean => {
  try {
    if (statfsSync(SHARED).type !== TMPFS) return false;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return isOwnFolder(folder);
  } catch {
    return false;
  }
};

/** Whether the folder is there and only this user can open it. */
export const isOwnFolder = (folder: string): boolean => {
  const found = lstatSync(folder, { throwIfNoEntry: false });
  return found?.isDirectory() === true && found.uid === process.getuid?.() && (found.mode & 0o077) === 0;
};

/** Removes the folder with all content: at a stop, and after a daemon that was killed. */
export const removeMemoryFolder = (folder: string): void => {
  try {
    rmSync(folder, { recursive: true, force: true });
  } catch (error) {
    log("daemon").warn("the content of secrets in {folder} cannot be removed: {error}", { folder, error });
  }
};
