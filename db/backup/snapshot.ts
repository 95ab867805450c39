// Copies the database while a server writes to it, in three passes over the file:
// - A slow draft of the file while it changes. It blocks no writer and need not be consistent.
// - A fast repair that writes only the changes since then, so that the last pass has little work.
// - The same repair under a read transaction, which also copies the write-ahead log. During the transaction the log cannot be truncated: it
//   grows with every write of the server, and must be checkpointed afterwards. The transaction is therefore open only during this pass.
// Under the read transaction, a plain copy of the database file followed by one of the log is a committed state:
// - A reader that uses the log prevents it from being restarted, and checkpoints move nothing newer than the reader's snapshot. Every page
//   that changes in the file during the copy is therefore also in the log, which is copied whole, and opening the copy repairs it.
// - A reader that does not need the log (everything was in the file) prevents checkpoints from touching the file at all. The log may then
//   be restarted once while it is copied, which is visible in its header; then the log is copied again.
// Runs in a separate process, because closing a file here would drop the locks that SQLite holds on it elsewhere in the process.
import { Database } from "bun:sqlite";
import { existsSync, rmSync, statSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { toRfc3339 } from "#base/clock.ts";
import { Draft } from "./draft.ts";
import type { Flow } from "./flow.ts";
import { BackupError, type HomesReference } from "./manifest.ts";

const HEADER_BYTES = 32;
const MAX_ATTEMPTS = 10;

/** The data that was read in the snapshot's transaction. */
export type Snapshot = { hashes: string[]; schema: { version: number; name: string }; homes: HomesReference[] };

/** A copy of the database at `to`, incomplete until `copyCommitted` has finished. */
export class DatabaseCopy implements AsyncDisposable {
  readonly #file: string;
  readonly #source: FileHandle;
  readonly #draft: Draft;
  readonly #to: string;

  private constructor(file: string, source: FileHandle, draft: Draft, to: string) {
    this.#file = file;
    this.#source = source;
    this.#draft = draft;
    this.#to = to;
  }

  /** Creates the draft and repairs it once. Throws `BackupError` when the database does not exist. */
  static async begin(file: string, to: string, flow: Flow): Promise<DatabaseCopy> {
    if (!existsSync(file)) throw new BackupError(`there is no database at ${file}`);
    const source = await open(file, "r");
    let draft: Draft | undefined;
    try {
      draft = await Draft.make(source, to, flow);
      await draft.repair(source, flow);
      return new DatabaseCopy(file, source, draft, to);
    } catch (error) {
      await draft?.close();
      await source.close();
      throw error;
    }
  }

  /**
   * Makes the copy a committed state. Calls `pin` with the snapshot before copying, since files that it references may be deleted; if it
   * throws, `copyCommitted` can be called again. Throws `BackupError`.
   */
  async copyCommitted(flow: Flow, pin: (snapshot: Snapshot) => Promise<void>): Promise<Snapshot> {
    const db = new Database(this.#file, { readwrite: true, create: false });
    try {
      db.run("pragma busy_timeout=10000");
      db.run("begin");
      const snapshot = readSnapshot(db);
      await pin(snapshot);
      // Runs at full speed, because the log grows until the end of the transaction. The checkpoint after it slows a server down for seconds
      // if the log has 50 MiB.
      await this.#draft.repair(this.#source, flow, { isUnlimited: true });
      await this.#copyLog(flow);
      return snapshot;
    } finally {
      if (db.inTransaction) db.run("rollback");
      db.close();
    }
  }

  async #copyLog(flow: Flow): Promise<void> {
    for (let i = 0; i < MAX_ATTEMPTS; i++) if (await copyLog(`${this.#file}-wal`, flow, `${this.#to}-wal`)) return;
    throw new BackupError("the write-ahead log kept changing");
  }

  /** Must run after the database was closed, because closing a file drops SQLite's locks. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#draft.close();
    await this.#source.close();
  }
}

/** Reads the data of the snapshot. The first read of the transaction starts the snapshot. */
const readSnapshot = (db: Database): Snapshot => {
  const lastMigration = db.query("select version, name from migrations order by version desc limit 1").get();
  if (lastMigration === null) throw new BackupError("the database has not been set up yet");
  const hashes = db.query("select hash from files union select hash from chat_files").values();
  return {
    schema: lastMigration as Snapshot["schema"],
    hashes: hashes.map(([hash]) => String(hash)),
    homes: listHomes(db),
  };
};

const SELECT_HOMES = `select location, count(*) backups, count(distinct workspace_id) workspaces, max(created_at) newest
  from home_backups where status = 'ready' group by location order by location`;

/** Returns the home backups; none for a database of a version without home backups. */
const listHomes = (db: Database): HomesReference[] => {
  if (db.query("select 1 from sqlite_master where name = 'home_backups'").get() === null) return [];
  const rows = db.query<Omit<HomesReference, "newest"> & { newest: number }, []>(SELECT_HOMES).all();
  return rows.map(({ location, workspaces, backups, newest }) => ({
    location,
    workspaces,
    backups,
    newest: toRfc3339(newest),
  }));
};

/** Returns false if the log was restarted during the copy, which makes the copy unusable. */
const copyLog = async (log: string, flow: Flow, to: string): Promise<boolean> => {
  rmSync(to, { force: true });
  if (!existsSync(log)) return true;
  await using file = await open(log, "r");
  const before = await readHeader(file);
  const { bytes } = await flow.copy(file, to, { limit: (await file.stat()).size });
  const isUnchanged = existsSync(log) && statSync(log).size >= bytes && before.equals(await readHeader(file));
  return isUnchanged && bytes >= before.byteLength;
};

const readHeader = async (file: FileHandle): Promise<Buffer> => {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(HEADER_BYTES), 0, HEADER_BYTES, 0);
  return buffer.subarray(0, bytesRead);
};

/** Merges a copied log into its database, so that one file contains everything, and checks its integrity. Throws `BackupError`. */
export const finishCopy = (file: string): void => {
  const db = new Database(file, { readwrite: true, create: false });
  try {
    db.run("pragma journal_mode=delete");
    checkIntegrity(db, file);
  } finally {
    db.close();
  }
};

/** Checks the integrity of an unused database without leaving any files. Throws `BackupError`. */
export const checkDatabase = (file: string): void => {
  const db = new Database(file, { readonly: true });
  try {
    checkIntegrity(db, file);
  } finally {
    db.close();
  }
};

const checkIntegrity = (db: Database, file: string): void => {
  let result: string;
  try {
    result = String(db.query("pragma quick_check(1)").values()[0]?.[0]);
  } catch (error) {
    result = (error as Error).message;
  }
  if (result !== "ok") throw new BackupError(`the database ${file} is damaged: ${result}`);
};
