// Commands are often run as root, while the server has a separate user. Files that root creates in a data directory are given to the
// directory's owner, or the next start could not read them. Symbolic links and files with several hard links are refused.
import { lchownSync, lstatSync, readdirSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";

/** Files that commands create in a data directory; homes of workspaces are not included. */
const OWN_FILES = /^(slipway\.db(-wal|-shm)?|lock(-journal)?|encryption\.key|files|backups)$/;

/**
 * Changes the owner of root's files to the directory's owner; does nothing for other users. With `deep`, this includes all files below
 * them, for a restored directory.
 */
export const changeToOwner = (data_dir: string, deep = false): void => {
  if (userInfo().uid !== 0) return;
  const owner = lstatSync(data_dir, { throwIfNoEntry: false });
  if (!owner?.isDirectory() || owner.uid === 0) return;
  const changeOwner = (path: string): void => {
    const stats = lstatSync(path);
    const isFolder = stats.isDirectory();
    // With a hard link, the file may also exist elsewhere and must stay root's.
    if (stats.uid === 0 && (isFolder || (stats.isFile() && stats.nlink === 1))) lchownSync(path, owner.uid, owner.gid);
    if (deep && isFolder) for (const name of readdirSync(path)) changeOwner(join(path, name));
  };
  for (const name of readdirSync(data_dir)) if (OWN_FILES.test(name)) changeOwner(join(data_dir, name));
};
