// Anyone who is at the machine is often root, and the server is a user of its own: what a verb of root has made in a data directory is
// given to the directory's owner, or the next start could not read it. Refuses to follow links, and what has more than one name.
import { lchownSync, lstatSync, readdirSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";

/** What verbs make in a data directory itself; the homes of workspaces are not ours. */
const OURS = /^(slipway\.db(-wal|-shm)?|lock(-journal)?|encryption\.key|files|backups)$/;

/** Gives what is root's to anyone who owns the directory; for others than root there is nothing to do. `deep`: all that was restored, too. */
export const giveToOwner = (data_dir: string, deep = false): void => {
  if (userInfo().uid !== 0) return;
  const owner = lstatSync(data_dir, { throwIfNoEntry: false });
  if (!owner?.isDirectory() || owner.uid === 0) return;
  const give = (path: string): void => {
    const found = lstatSync(path);
    const isFolder = found.isDirectory();
    // A second name of a file of root's elsewhere is not to be given away.
    if (found.uid === 0 && (isFolder || (found.isFile() && found.nlink === 1))) lchownSync(path, owner.uid, owner.gid);
    if (deep && isFolder) for (const name of readdirSync(path)) give(join(path, name));
  };
  for (const name of readdirSync(data_dir)) if (OURS.test(name)) give(join(data_dir, name));
};
