// Opens the database file: directories, lock, pragmas, version check, migrations. Used by db/engine/local.ts and by tools that inspect a
// data directory while no server runs.
import { Database } from "bun:sqlite";
import { closeSync, mkdirSync, openSync } from "node:fs";
import { installImage } from "./image.ts";
import { lockDirectory } from "./lock.ts";
import { migrate } from "./migrate.ts";
import { rejectUnfinishedMove } from "./move-installation.ts";

export type OpenDatabase = { db: Database; file: string; unlock(): void };

export type OpenOptions = {
  cacheMb: number;
  now: number;
  /** The initial content of a new database (image.ts); without it, all migrations run. */
  image?: Uint8Array | undefined;
};

/** Earlier versions of SQLite have a race when the log is reset, which can lose data (RELIABILITY section 1). */
const OLDEST_SQLITE = [3, 51, 3];

/**
 * Opens `<directory>/slipway.db` for writing, migrates it and returns the connection. Creates the directory with mode 0700. Throws when
 * another process holds it, the database is newer than this program, or a move into the directory was interrupted.
 */
export const openDatabase = (directory: string, options: OpenOptions): OpenDatabase => {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  rejectUnfinishedMove(directory);
  const file = `${directory}/slipway.db`;
  // Creates the file before SQLite does, so that only its owner can read it, independently of the directory's permissions. The log and
  // backups get the same permissions. An unwritable directory is reported with the system's error, which SQLite hides.
  closeSync(openSync(file, "a", 0o600));
  const lock = lockDirectory(directory);
  let db: Database | undefined;
  try {
    if (options.image) installImage(directory, options.image);
    db = new Database(file, { readwrite: true, create: false, strict: true });
    checkVersion(db);
    // Must come first, because the next pragma needs a lock that a closing connection may still hold.
    db.run("pragma busy_timeout=5000");
    db.run("pragma journal_mode=wal");
    db.run("pragma synchronous=full");
    db.run("pragma foreign_keys=on");
    // Keeps savepoint data in memory, because a temporary file would take a fifth of a batch's time.
    db.run("pragma temp_store=memory");
    db.run(`pragma cache_size=-${options.cacheMb * 1024}`);
    migrate(db, { directory, now: options.now });
    // Checkpoints dominate a writer's p99, so a Worker runs them.
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
    const actual = parts[i] ?? 0;
    const required = OLDEST_SQLITE[i] as number;
    if (actual > required) return;
    if (actual < required)
      throw new Error(`SQLite ${version} is too old, ${OLDEST_SQLITE.join(".")} or newer is needed`);
  }
};
