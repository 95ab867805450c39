// The folder that backups go into: which of them are there, which is the newest that can be used, and what must go. Used by the
// scheduled backups, the verb `backup` and `doctor`. A backup that is damaged or dated ahead of the clock counts as none.
import { existsSync } from "node:fs";
import { lstat, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { BackupError, isBackupName, MANIFEST, readManifest, timeOfName } from "./manifest.ts";

const DAY_MS = 86_400_000;

/** What a backup that was cut off (a kill, a power loss) leaves: half of it, and second names of uploads in the data directory. */
const LEFTOVER = /^\.slipway-[\dTZ-]+\.part(\.tar|-pins)?$/;

/** Those with a manifest by their names, the oldest first; `now` leaves out what a clock that was wrong has dated later. */
export const backupsIn = async (folder: string, now: number): Promise<string[]> => {
  if (!existsSync(folder)) return [];
  const names = (await readdir(folder)).filter((name) => isBackupName(name) && timeOfName(name) <= now);
  return names.filter((name) => existsSync(join(folder, name, MANIFEST))).sort();
};

/** When the newest one was made whose manifest can be read, milliseconds since 1970. */
export const newestBackup = async (folder: string, now: number): Promise<number | undefined> => {
  const newest = (await backupsIn(folder, now)).findLast((name) => isReadable(join(folder, name)));
  return newest === undefined ? undefined : timeOfName(newest);
};

/** Removes what is older than the newest `keep` that can be read. */
export const removeOld = async (folder: string, keep: number, now: number): Promise<void> => {
  let kept = 0;
  for (const name of (await backupsIn(folder, now)).reverse()) {
    if (kept === keep) await rm(join(folder, name), { recursive: true, force: true });
    else if (isReadable(join(folder, name))) kept += 1;
  }
};

/** Removes what backups that were cut off have left in these folders. A day old: nobody works on it any more. What is not ours stays. */
export const removeLeftovers = async (folders: Iterable<string>, now: number): Promise<void> => {
  for (const folder of new Set(folders)) {
    const names = existsSync(folder) ? await readdir(folder) : [];
    for (const name of names.filter((one) => LEFTOVER.test(one))) await removeOlder(join(folder, name), now - DAY_MS);
  }
};

const removeOlder = async (path: string, than: number): Promise<void> => {
  try {
    if ((await lstat(path)).mtimeMs < than) await rm(path, { recursive: true, force: true });
  } catch (error) {
    // Someone else's, or gone in the meantime: no reason to make no backup.
    if (!/^(EACCES|EPERM|ENOENT)$/.test(String((error as { code?: unknown }).code))) throw error;
  }
};

const isReadable = (backup: string): boolean => {
  try {
    readManifest(backup);
    return true;
  } catch (error) {
    if (error instanceof BackupError) return false;
    throw error;
  }
};
