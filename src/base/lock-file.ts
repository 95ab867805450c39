// Locks a file against other processes on this machine. The lock is SQLite's exclusive lock on an otherwise empty file: the kernel releases
// it when the process dies, so a crash leaves nothing to clean up.
import { Database } from "bun:sqlite";

export class LockedError extends Error {
  override readonly name = "LockedError";
}

/**
 * Takes the lock of this file, which is created if needed, or throws `LockedError` with the message `taken`. Close the database to release
 * it.
 */
export const lockFile = (path: string, taken: string): Database => {
  const db = new Database(path, { create: true });
  try {
    db.run("pragma busy_timeout=0");
    db.run("pragma locking_mode=exclusive");
    // Nothing is ever written; without this, SQLite would create a second file next to it.
    db.run("pragma journal_mode=memory");
    db.run("begin exclusive");
    return db;
  } catch (cause) {
    db.close();
    if (!/^SQLITE_(BUSY|LOCKED)/.test(String((cause as { code?: unknown }).code))) throw cause;
    throw new LockedError(taken, { cause });
  }
};
