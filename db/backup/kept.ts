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

/** Removes what backups that were cut off have left in these folders. A day old: nobody works on it any more. */
export const removeLeftovers = async (folders: Iterable<string>, now: number): Promise<void> => {
  for (const folder of new Set(folders)) {
    if (!existsSync(folder)) continue;
    for (const name of (await readdir(folder)).filter((one) => LEFTOVER.test(one))) {
      const { mtimeMs } = await lstat(join(folder, name));
      if (mtimeMs < now - DAY_MS) await rm(join(folder, name), { recursive: true, force: true });
    }
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
