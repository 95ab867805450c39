// Opens the one database file: directories, lock, pragmas, version check, migrations. Used by db/engine/local.ts and by tools that
// look at a data directory while no server runs.
import { Database } from "bun:sqlite";
import { closeSync, mkdirSync, openSync } from "node:fs";
import { placeImage } from "./image.ts";
import { lockDirectory } from "./lock.ts";
import { migrate } from "./migrate.ts";
import { refuseUnfinishedMove } from "./moving.ts";

export type OpenDatabase = { db: Database; file: string; unlock(): void };

export type OpenOptions = {
  cacheMb: number;
  now: number;
  /** What a new database begins with (image.ts); without it, it goes through every step. */
  image?: Uint8Array | undefined;
};

/** SQLite before this has a WAL reset race that can lose data (RELIABILITY section 1). */
const OLDEST_SQLITE = [3, 51, 3];

/**
 * Opens `<directory>/slipway.db` for writing, brings its schema up to date and returns the connection.
 * The directory is made with mode 0700. Throws when another process holds it, the database is newer than this program, or a move into the
 * directory was broken off.
 */
export const openDatabase = (directory: string, options: OpenOptions): OpenDatabase => {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  refuseUnfinishedMove(directory);
  const file = `${directory}/slipway.db`;
  // Made before SQLite does it, so that nobody else can read it, whatever the directory allows; log and backups follow. A directory that
  // cannot be written is told in the words of the system, which SQLite does not pass on.
  closeSync(openSync(file, "a", 0o600));
  const lock = lockDirectory(directory);
  let db: Database | undefined;
  try {
    if (options.image) placeImage(directory, options.image);
    db = new Database(file, { readwrite: true, create: false, strict: true });
    checkVersion(db);
    // First: the next pragma already wants a lock, which one that is just closing may hold.
    db.run("pragma busy_timeout=5000");
    db.run("pragma journal_mode=wal");
    db.run("pragma synchronous=full");
    db.run("pragma foreign_keys=on");
    // What a savepoint remembers stays in memory: in a temporary file it was a fifth of a batch's time (240 to 196 us for 100 lines).
    db.run("pragma temp_store=memory");
    db.run(`pragma cache_size=-${options.cacheMb * 1024}`);
    migrate(db, { directory, now: options.now });
    // Checkpoints are the p99 of a writer, so a Worker makes them (PERFORMANCE section 2f).
    db.run("pragma wal_autocheckpoint=0");
    return { db, file, unlock: () => lock.close() };
  } catch (error) {
    db?.close();
    lock.close();
    throw error;
  }
};

const checkVersion = (db: Database): void => {
  const { version } = db.query("select sqlite_version() as version").get() as { version: string };
  const parts = version.split(".").map(Number);
  for (let i = 0; i < OLDEST_SQLITE.length; i++) {
    const have = parts[i] ?? 0;
    const need = OLDEST_SQLITE[i] as number;
    if (have > need) return;
    if (have < need) throw new Error(`SQLite ${version} is too old, ${OLDEST_SQLITE.join(".")} or newer is needed`);
  }
};
