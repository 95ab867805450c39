// Makes the providers of one run independent of the folder that all runs share, because a later `init` without a lock file may replace
// files in that folder that this run still needs (facts/terraform 1.11, 1.12).
import { constants } from "node:fs";
import { cp, readdir, realpath, rm, symlink } from "node:fs/promises";
import { join } from "node:path";

/** A provider's path is `<host>/<owner>/<name>/<version>/<platform>`. */
const MAX_DEPTH = 5;

/** Replaces each link into the shared folder by a copy, or by a direct link if the shared folder itself only links to another path. */
export const detachSharedProviders = async (work: string, shared: string): Promise<void> => {
  const root = join(work, ".terraform/providers");
  const sharedPrefix = `${await realpath(shared)}/`;
  for (const path of await listLinksBelow(root, MAX_DEPTH)) {
    const target = await realpath(path);
    await rm(path);
    if (!target.startsWith(sharedPrefix)) await symlink(target, path);
    // On file systems with reflinks, a copy takes no space.
    else await cp(target, path, { recursive: true, mode: constants.COPYFILE_FICLONE });
  }
};

const listLinksBelow = async (folder: string, depth: number): Promise<string[]> => {
  const found: string[] = [];
  for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
    const path = join(folder, entry.name);
    if (entry.isSymbolicLink()) found.push(path);
    else if (entry.isDirectory() && depth > 1) found.push(...(await listLinksBelow(path, depth - 1)));
  }
  return found;
};
