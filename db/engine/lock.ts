// Ensures one server process per data directory.
import { lockFile } from "#base/lock-file.ts";

/** Locks this directory or throws `LockedError`. Close the returned value to unlock it. */
export const lockDirectory = (directory: string): { close(): void } => {
  const db = lockFile(`${directory}/lock`, `the data directory ${directory} is in use by another Slipway process`);
  db.run("create table if not exists held (by integer)");
  return { close: () => db.close() };
};
