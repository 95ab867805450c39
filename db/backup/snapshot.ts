// Copies the database while a server writes to it, in passes over the file:
// - A draft: the file as it is at each moment, slowly. Nobody is held up, and nothing needs to fit together yet.
// - Again, quickly: only what has changed in the meantime is written again, which leaves little for the last pass.
// - The same under a read transaction, and the write-ahead log is copied. While the transaction lasts the log cannot be shortened: it
//   grows with every write of the server, and all of it has to be moved afterwards. That is why it lasts for this pass only.
// Under the read transaction a plain copy of the database file, followed by one of the log, is a state that was committed:
// - A reader that uses the log keeps it from being started afresh, and checkpoints move nothing newer than what it sees. So every
//   page that changes in the file during the copy is also in the log, which is copied whole, and opening the copy puts it right.
// - A reader that needs no log (all of it was in the file) keeps checkpoints from touching the file at all. Then the log may be
//   started afresh once while it is copied; that shows in its header, and it is copied again.
// Runs in a process of its own: closing a file here would drop the locks that SQLite holds on it elsewhere in the process.
import { Database } from "bun:sqlite";
import { existsSync, rmSync, statSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { rfc3339 } from "#base/clock.ts";
import { Draft } from "./draft.ts";
import type { Flow } from "./flow.ts";
import { BackupError, type HomesReference } from "./manifest.ts";

const HEADER_BYTES = 32;
const TRIES = 10;

/** What was read in the snapshot's own transaction. */
export type Snapshot = { hashes: string[]; schema: { version: number; name: string }; homes: HomesReference[] };

/** A copy of the database at `to`, not finished until `take` has been through. */
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

  /** Makes the draft, and repairs it once. Throws `BackupError` when there is no database. */
  static async begin(file: string, to: string, flow: Flow): Promise<DatabaseCopy> {
    if (!existsSync(file)) throw new BackupError(`there is no database at ${file}`);
    const source = await open(file, "r");
    let draft: Draft | undefined;
    try {
      draft = await Draft.make(source, to, flow);
      await draft.mend(source, flow);
      return new DatabaseCopy(file, source, draft, to);
    } catch (error) {
      await draft?.close();
      await source.close();
      throw error;
    }
  }

  /**
   * Makes the copy a state that was committed. `pin` is notified of the snapshot before anything is copied, since what the snapshot names may
   * go away; when it throws, `take` can be called again. Throws `BackupError`.
   */
  async take(flow: Flow, pin: (snapshot: Snapshot) => Promise<void>): Promise<Snapshot> {
    const db = new Database(this.#file, { readwrite: true, create: false });
    try {
      db.run("pragma busy_timeout=10000");
      db.run("begin");
      const snapshot = look(db);
      await pin(snapshot);
      // The log grows until this is done, and all that has grown is then moved at once: a server feels 50 MiB for seconds.
      await this.#draft.mend(this.#source, flow, { hurried: true });
      await this.#copyLog(flow);
      return snapshot;
    } finally {
      if (db.inTransaction) db.run("rollback");
      db.close();
    }
  }

  async #copyLog(flow: Flow): Promise<void> {
    for (let i = 0; i < TRIES; i++) if (await copyLog(`${this.#file}-wal`, flow, `${this.#to}-wal`)) return;
    throw new BackupError("the write-ahead log did not stand still");
  }

  /** After the database was closed, see above. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#draft.close();
    await this.#source.close();
  }
}

/** The first read begins the snapshot. */
const look = (db: Database): Snapshot => {
  const applied = db.query("select version, name from migrations order by version desc limit 1").get();
  if (applied === null) throw new BackupError("the database has not been set up yet");
  const hashes = db.query("select hash from files union select hash from chat_files").values();
  return {
    schema: applied as Snapshot["schema"],
    hashes: hashes.map(([hash]) => String(hash)),
    homes: lookForHomes(db),
  };
};

const HOMES = `select location, count(*) backups, count(distinct workspace_id) workspaces, max(created_at) newest
  from home_backups where status = 'ready' group by location order by location`;

/** None in a database that is older than home backups. */
const lookForHomes = (db: Database): HomesReference[] => {
  if (db.query("select 1 from sqlite_master where name = 'home_backups'").get() === null) return [];
  const rows = db.query<Omit<HomesReference, "newest"> & { newest: number }, []>(HOMES).all();
  return rows.map(({ location, workspaces, backups, newest }) => ({
    location,
    workspaces,
    backups,
    newest: rfc3339(newest),
  }));
};

/** False: it was started afresh in the meantime, and what was copied is a piece of an old one, which must not be used. */
const copyLog = async (log: string, flow: Flow, to: string): Promise<boolean> => {
  rmSync(to, { force: true });
  if (!existsSync(log)) return true;
  await using file = await open(log, "r");
  const before = await readHeader(file);
  const { bytes } = await flow.copy(file, to, { limit: (await file.stat()).size });
  const same = existsSync(log) && statSync(log).size >= bytes && before.equals(await readHeader(file));
  return same && bytes >= before.byteLength;
};

const readHeader = async (file: FileHandle): Promise<Buffer> => {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(HEADER_BYTES), 0, HEADER_BYTES, 0);
  return buffer.subarray(0, bytesRead);
};

/** Puts a copied log into its database, so that one file holds everything, and looks whether it is whole. Throws `BackupError`. */
export const finishCopy = (file: string): void => {
  const db = new Database(file, { readwrite: true, create: false });
  try {
    db.run("pragma journal_mode=delete");
    checkWhole(db, file);
  } finally {
    db.close();
  }
};

/** Whether a database that nobody uses is whole; leaves nothing besides it. Throws `BackupError`. */
export const checkDatabase = (file: string): void => {
  const db = new Database(file, { readonly: true });
  try {
    checkWhole(db, file);
  } finally {
    db.close();
  }
};

const checkWhole = (db: Database, file: string): void => {
  let said: string;
  try {
    said = String(db.query("pragma quick_check(1)").values()[0]?.[0]);
  } catch (error) {
    said = (error as Error).message;
  }
  if (said !== "ok") throw new BackupError(`the database ${file} is damaged: ${said}`);
};
