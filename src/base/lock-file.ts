// Keeps other processes of this machine away from a place. The lock is SQLite's own exclusive lock on an otherwise empty file: the kernel drops it
// when the process dies, so a crash leaves nothing behind that has to be cleaned up.
import { Database } from "bun:sqlite";

export class LockedError extends Error {
  override readonly name = "LockedError";
}

/** Takes the lock of this file, which is made if need be, or throws `LockedError` with these words. Close the database to give it up. */
export const lockFile = (path: string, taken: string): Database => {
  const db = new Database(path, { create: true });
  try {
    db.run("pragma busy_timeout=0");
    db.run("pragma locking_mode=exclusive");
    // Nothing is ever written: without this a second file would stand beside it.
    db.run("pragma journal_mode=memory");
    db.run("begin exclusive");
    return db;
  } catch (cause) {
    db.close();
    if (!/^SQLITE_(BUSY|LOCKED)/.test(String((cause as { code?: unknown }).code))) throw cause;
    throw new LockedError(taken, { cause });
  }
};
