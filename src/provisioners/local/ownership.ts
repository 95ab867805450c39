// Who may look into the folders of local workspaces: the server's user alone, or the separate user that they run as, which reaches its
// homes and nothing else of the data directory.
import { chmodSync, chownSync, lstatSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { type LocalUser, runAs } from "./user.ts";

const PRIVATE = 0o700;
/** The group of the user may pass through, not look around. */
const PASSABLE = 0o710;

/** Folders on the way to a home: for the server's user alone again. */
export const closeToOthers = (folders: readonly string[]): void => {
  for (const folder of folders) if ((statSync(folder).mode & 0o777) !== PRIVATE) chmodSync(folder, PRIVATE);
};

/**
 * Lets the user reach `home`: `root` (<data_dir>/workspaces), the data directory and `folder` can be passed through by its group, and
 * everything else in the data directory is closed to it. The home and all in it belong to the user afterwards.
 */
export const openToUser = (root: string, folder: string, home: string, user: LocalUser): void => {
  const data = dirname(root);
  for (const name of readdirSync(data)) {
    if (name === basename(root)) continue;
    const path = join(data, name);
    const { mode } = lstatSync(path);
    if ((mode & 0o077) !== 0 && !lstatSync(path).isSymbolicLink()) chmodSync(path, mode & PRIVATE);
  }
  for (const path of [data, root, folder]) {
    chownSync(path, statSync(path).uid, user.gid);
    chmodSync(path, PASSABLE);
  }
  // What was made before the setting was, is the server's user's. Links are not followed.
  if (lstatSync(home).uid !== user.uid) {
    Bun.spawnSync(["chown", "-hR", `${user.uid}:${user.gid}`, home], { env: { PATH: "/usr/sbin:/usr/bin:/bin" } });
  }
};

/**
 * Empties a home that belongs to another user, as that user: whatever it has put there, such as links that change under our hands, can
 * then lead to nothing that is not its own. The rest belongs to us.
 */
export const emptyAsItsUser = (home: string): void => {
  const { uid, gid } = lstatSync(home);
  if (process.geteuid?.() !== 0 || uid === 0) return;
  runAs({ uid, gid }, ["/bin/sh", "-c", 'chmod -R u+rwX "$1"; rm -rf -- "$1"', "sh", home]);
  chownSync(home, 0, 0);
  chmodSync(home, PRIVATE);
};
