// The in-memory folder for a workspace's secret files and their digests. They are in memory so that no volume, snapshot or backup of the
// workspace contains them, and they disappear when a container is killed.
import { lstatSync, mkdirSync, rmSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { log } from "../log.ts";

/** The memory file system of Linux; each container has its own. */
const SHARED_MEMORY_PATH = "/dev/shm";
const TMPFS = 0x01021994;

/** Returns the path of a workspace's folder, whether or not the folder exists. The path is the same in each container of the workspace. */
export const getMemoryFolder = (workspace_id: string): string =>
  join(SHARED_MEMORY_PATH, `slipway-secrets-${workspace_id}`);

/** Creates the folder. Returns false when the system has no memory file system, or an existing folder is accessible to others. */
export const makeMemoryFolder = (folder: string): boolean => {
  try {
    if (statfsSync(SHARED_MEMORY_PATH).type !== TMPFS) return false;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return isOwnFolder(folder);
  } catch {
    return false;
  }
};

/** Returns whether the folder exists and only this user can access it. */
export const isOwnFolder = (folder: string): boolean => {
  const found = lstatSync(folder, { throwIfNoEntry: false });
  return found?.isDirectory() === true && found.uid === process.getuid?.() && (found.mode & 0o077) === 0;
};

/** Removes the folder with its content: at a stop, and after a daemon was killed. */
export const removeMemoryFolder = (folder: string): void => {
  try {
    rmSync(folder, { recursive: true, force: true });
  } catch (error) {
    log("daemon").warn("the content of secrets in {folder} cannot be removed: {error}", { folder, error });
  }
};
