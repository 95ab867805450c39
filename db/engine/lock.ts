// One server process for each data directory. The lock is SQLite's own exclusive file lock on an otherwise empty database: the
// kernel drops it when the process dies, so a crash leaves nothing behind that has to be cleaned up.
import { Database } from "bun:sqlite";

export class LockedError extends Error {
  override readonly name = "LockedError";
}

/** Takes the lock of this directory or throws `LockedError`. Close the returned value to give it up. */
export const lockDirectory = (directory: string): { close(): void } => {
  const db = new Database(`${directory}/lock`, { create: true });
  try {
    db.run("pragma busy_timeout=0");
    db.run("pragma locking_mode=exclusive");
    db.run("begin exclusive");
    db.run("create table if not exists held (by integer)");
    return { close: () => db.close() };
  } catch (cause) {
    db.close();
    if (!/^SQLITE_(BUSY|LOCKED)/.test(String((cause as { code?: unknown }).code))) throw cause;
    throw new LockedError(`the data directory ${directory} is in use by another Slipway process`, { cause });
  }
};
