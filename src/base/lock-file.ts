// Locks a file against other processes on this machine. The lock is SQLite's exclusive lock on an otherwise empty file: the kernel releases
// it when the process dies, so a crash leaves nothing to clean up.
import { Database } from "bun:sqlite";

export class LockedError extends Error {
  override readonly name = "LockedError";
}

/**
 * Locks this file, which is created if needed. Throws `LockedError` with `message` if another process has the lock. Close the database to
 * release it.
 */
export const lockFile = (path: string, message: string): Database => {
  const db = new Database(path, { create: true });
  try {
    db.run("pragma busy_timeout=0");
    db.run("pragma locking_mode=exclusive");
    // Nothing is ever written. Without this setting, SQLite would create a second file.
    db.run("pragma journal_mode=memory");
    db.run("begin exclusive");
    return db;
  } catch (cause) {
    db.close();
    if (!/^SQLITE_(BUSY|LOCKED)/.test(String((cause as { code?: unknown }).code))) throw cause;
    throw new LockedError(message, { cause });
  }
};
