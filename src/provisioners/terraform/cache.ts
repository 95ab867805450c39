// Packs the external modules and the lock file of an import into a tar archive, so that builds do not need a registry (facts/terraform
// 1.13, 1.15).
import { lstat, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { readRegularText } from "#base/system/regular-file.ts";
import type { Session } from "./session.ts";

/** Maximum bytes of all modules together. Modules that do not fit are downloaded again for each build. */
const MAX_MODULES_BYTES = 20 * 1024 * 1024;
/** Maximum bytes of a scanned file, and of the lock file. */
const MAX_SCANNED_BYTES = 1024 * 1024;
const MODULES_FOLDER = ".terraform/modules";
const LOCK_FILE = ".terraform.lock.hcl";

export type PackedCache = { readonly archive: Uint8Array<ArrayBuffer>; readonly leftOut: readonly string[] };

/** Returns the archive and the names of the modules that do not fit; undefined if there is nothing to store. */
export const packCache = async ({ work }: Session): Promise<PackedCache | undefined> => {
  const files: Record<string, Uint8Array> = {};
  const leftOut: string[] = [];
  const lock = readRegularText(join(work, LOCK_FILE), MAX_SCANNED_BYTES);
  if (lock) files[LOCK_FILE] = new TextEncoder().encode(lock);
  let remainingBytes = MAX_MODULES_BYTES;
  for (const name of await listNames(join(work, MODULES_FOLDER))) {
    const moduleFiles = await listFilesBelow(work, `${MODULES_FOLDER}/${name}`);
    const size = moduleFiles.reduce((sum, file) => sum + file.size, 0);
    if (size > remainingBytes) {
      leftOut.push(name);
      continue;
    }
    remainingBytes -= size;
    for (const { path } of moduleFiles) files[path] = await readFile(join(work, path));
  }
  if (Object.keys(files).length === 0) return undefined;
  return { archive: new Uint8Array(await new Bun.Archive(files).bytes()), leftOut };
};

type File = { readonly path: string; readonly size: number };

const listFilesBelow = async (work: string, path: string): Promise<File[]> => {
  const stats = await lstat(join(work, path)).catch(() => undefined);
  if (stats?.isFile()) return [{ path, size: stats.size }];
  if (!stats?.isDirectory()) return [];
  const files: File[] = [];
  for (const name of await listNames(join(work, path))) {
    if (name !== ".git") files.push(...(await listFilesBelow(work, `${path}/${name}`)));
  }
  return files;
};

const listNames = async (folder: string): Promise<string[]> => (await readdir(folder).catch(() => [])).sort();

/** Returns which of the owner's secrets the files of the template and its modules mention (facts/terraform 2.1). */
export const listUsedSecrets = async ({ work }: Session): Promise<string[]> => {
  const names = [...(await listNames(work)).filter((name) => name !== ".terraform"), MODULES_FOLDER];
  const secrets = new Set<string>();
  for (const name of names) {
    for (const { path, size } of await listFilesBelow(work, name)) {
      if (size > MAX_SCANNED_BYTES) continue;
      const text = await readFile(join(work, path), "latin1");
      if (/session_token/i.test(text)) secrets.add("session_token");
      if (/ssh_(?:private|public)_key/i.test(text)) secrets.add("ssh_key");
    }
  }
  return [...secrets].sort();
};
