// The backup folder: lists the backups, finds the newest usable one, and chooses which to delete. Used by scheduled backups, `slipway
// backup` and `slipway doctor`. Ignores damaged backups and backups with a date in the future.
import { existsSync } from "node:fs";
import { lstat, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { BackupError, isBackupName, MANIFEST, parseBackupTime, readManifest } from "./manifest.ts";

const DAY_MS = 86_400_000;

/** Leftovers of interrupted backups (a kill, a power loss): partial backups, and hard links to uploads in the data directory. */
const LEFTOVER = /^\.slipway-[\dTZ-]+\.part(\.tar|-pins)?$/;

/** Returns the names of backups with a manifest, oldest first. Skips backups with a date after `now`, which a wrong clock has caused. */
export const listBackups = async (folder: string, now: number): Promise<string[]> => {
  if (!existsSync(folder)) return [];
  const names = (await readdir(folder)).filter((name) => isBackupName(name) && parseBackupTime(name) <= now);
  return names.filter((name) => existsSync(join(folder, name, MANIFEST))).sort();
};

/** Returns when the newest backup with a readable manifest was created, in milliseconds since 1970. */
export const findNewestBackup = async (folder: string, now: number): Promise<number | undefined> => {
  const newest = (await listBackups(folder, now)).findLast((name) => isReadable(join(folder, name)));
  return newest === undefined ? undefined : parseBackupTime(newest);
};

/** Deletes all backups that are older than the newest `keep` readable ones. */
export const removeOld = async (folder: string, keep: number, now: number): Promise<void> => {
  let keptCount = 0;
  for (const name of (await listBackups(folder, now)).reverse()) {
    if (keptCount === keep) await rm(join(folder, name), { recursive: true, force: true });
    else if (isReadable(join(folder, name))) keptCount += 1;
  }
};

/**
 * Deletes leftovers of interrupted backups in these folders. They must be a day old, so that no backup still uses them. Other files stay.
 */
export const removeLeftovers = async (folders: Iterable<string>, now: number): Promise<void> => {
  for (const folder of new Set(folders)) {
    const names = existsSync(folder) ? await readdir(folder) : [];
    for (const name of names.filter((one) => LEFTOVER.test(one))) await removeIfOlder(join(folder, name), now - DAY_MS);
  }
};

const removeIfOlder = async (path: string, before: number): Promise<void> => {
  try {
    if ((await lstat(path)).mtimeMs < before) await rm(path, { recursive: true, force: true });
  } catch (error) {
    // The file belongs to another user or was deleted concurrently. Neither must prevent the backup.
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
