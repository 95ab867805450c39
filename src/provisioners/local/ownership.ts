// Sets who can access the folders of local workspaces: only the server's user, or also the separate user that workspaces run as. That user
// can access the homes and nothing else in the data directory.
import { chmodSync, chownSync, lstatSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { type LocalUser, runAs } from "./user.ts";

const PRIVATE_MODE = 0o700;
/** The user's group may traverse the folder but not list it. */
const TRAVERSABLE_MODE = 0o710;

/** Allows only the server's user to access these folders. */
export const restrictToServer = (folders: readonly string[]): void => {
  for (const folder of folders) if ((statSync(folder).mode & 0o777) !== PRIVATE_MODE) chmodSync(folder, PRIVATE_MODE);
};

/**
 * Makes the user the owner of `home` and its content. The user's group may traverse the data directory, `root` (<data_dir>/workspaces) and
 * `folder`, but cannot access anything else in the data directory.
 */
export const grantAccess = (root: string, folder: string, home: string, user: LocalUser): void => {
  const data = dirname(root);
  for (const name of readdirSync(data)) {
    if (name === basename(root)) continue;
    const path = join(data, name);
    const { mode } = lstatSync(path);
    if ((mode & 0o077) !== 0 && !lstatSync(path).isSymbolicLink()) chmodSync(path, mode & PRIVATE_MODE);
  }
  for (const path of [data, root, folder]) {
    chownSync(path, statSync(path).uid, user.gid);
    chmodSync(path, TRAVERSABLE_MODE);
  }
  // Files that were created before the setting was changed belong to the server's user. -h does not follow links.
  if (lstatSync(home).uid !== user.uid) {
    Bun.spawnSync(["chown", "-hR", `${user.uid}:${user.gid}`, home], { env: { PATH: "/usr/sbin:/usr/bin:/bin" } });
  }
};

/**
 * Empties another user's home as that user, so that links that change during the removal cannot lead to files of other users. The remaining
 * empty folder then belongs to the server.
 */
export const emptyHomeAsOwner = (home: string): void => {
  const { uid, gid } = lstatSync(home);
  if (process.geteuid?.() !== 0 || uid === 0) return;
  runAs({ uid, gid }, ["/bin/sh", "-c", 'chmod -R u+rwX "$1"; rm -rf -- "$1"', "sh", home]);
  chownSync(home, 0, 0);
  chmodSync(home, PRIVATE_MODE);
};
