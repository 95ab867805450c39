// Moves an installation into a data directory. Assembles all files in a staging folder in that directory, and moves them into place when
// they are complete and flushed, the database last. A folder with a database therefore contains all files, even after an interrupted move.
import { existsSync, mkdirSync, rmSync, statSync } from "node:fs";
import { mkdir, open, readdir, rename } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { getKeyPath } from "#base/encryption.ts";
import { failpoint } from "#base/failpoint.ts";
import { lockDirectory } from "./lock.ts";
import { UnsafeDatabaseError } from "./unsafe.ts";

const MOVING = ".moving";
/** The name of the database in its directory. */
export const DATABASE = "slipway.db";

/** Returns why only another move may use this data directory, or undefined if there is no unfinished move. */
export const findUnfinishedMove = (directory: string): string | undefined =>
  existsSync(join(directory, MOVING)) && !hasDatabaseFile(directory)
    ? `a move into ${directory} has not ended: run \`slipway migrate --to sqlite\` again, or remove ${join(directory, MOVING)}`
    : undefined;

/** Throws UnsafeDatabaseError. */
export const rejectUnfinishedMove = (directory: string): void => {
  const problem = findUnfinishedMove(directory);
  if (problem !== undefined) throw new UnsafeDatabaseError(problem);
};

/** Returns whether the directory has a database, or the log of one, which would be mistaken for the log of a later database. */
export const hasDatabaseFile = (directory: string): boolean =>
  [DATABASE, `${DATABASE}-wal`, `${DATABASE}-journal`].some(
    (name) => (statSync(join(directory, name), { throwIfNoEntry: false })?.size ?? 0) > 0,
  );

export class Moving implements Disposable {
  /** The folder for database, uploads and key, laid out like a data directory. */
  readonly path: string;
  readonly #directory: string;
  readonly #lock: { close(): void };

  private constructor(directory: string, lock: { close(): void }) {
    this.#directory = directory;
    this.#lock = lock;
    this.path = join(directory, MOVING);
  }

  /** Deletes leftovers of an interrupted move. Throws LockedError, and UnsafeDatabaseError if there is a database. */
  static async begin(directory: string): Promise<Moving> {
    const created = mkdirSync(directory, { recursive: true, mode: 0o700 });
    if (created !== undefined) await flushNames(resolve(directory), resolve(created));
    const moving = new Moving(directory, lockDirectory(directory));
    try {
      if (hasDatabaseFile(directory)) throw new UnsafeDatabaseError(`${directory} holds a database already`);
      rmSync(moving.path, { recursive: true, force: true });
      mkdirSync(moving.path, { mode: 0o700 });
      return moving;
    } catch (error) {
      moving.#lock.close();
      throw error;
    }
  }

  /** Moves all files into place. The files must be flushed, and the database closed. */
  async finish(): Promise<void> {
    const [from, to] = [join(this.path, "files"), join(this.#directory, "files")];
    for (const folder of existsSync(from) ? await readdir(from) : []) {
      await mkdir(join(to, folder), { recursive: true, mode: 0o700 });
      // Moves uploads one by one, because the folder may have uploads that a node has cached.
      for (const name of await readdir(join(from, folder)))
        await renameWithFailpoint(join(from, folder, name), join(to, folder, name));
      await flush(join(to, folder));
    }
    if (existsSync(to)) await flush(to);
    if (existsSync(getKeyPath(this.path)))
      await renameWithFailpoint(getKeyPath(this.path), getKeyPath(this.#directory));
    await flush(this.#directory);
    await renameWithFailpoint(join(this.path, DATABASE), join(this.#directory, DATABASE));
    await flush(this.#directory);
    failpoint("move_name");
  }

  /** Deletes the staging folder and unlocks the directory. */
  [Symbol.dispose](): void {
    try {
      rmSync(this.path, { recursive: true, force: true });
    } finally {
      this.#lock.close();
    }
  }
}

const renameWithFailpoint = async (from: string, to: string): Promise<void> => {
  failpoint("move_name");
  await rename(from, to);
};

/** Flushes a file, or the directory entries of a folder. */
export const flush = async (path: string): Promise<void> => {
  await using file = await open(path, "r");
  await file.sync();
};

/** Flushes a folder's directory entries and those of its parents, up to the first that was created. */
const flushNames = async (folder: string, firstCreated: string): Promise<void> => {
  await flush(dirname(folder));
  if (folder !== firstCreated) await flushNames(dirname(folder), firstCreated);
};
