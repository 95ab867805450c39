// The store of a single server: SQLite in this process, with a group-committing writer, reader Workers, a Worker for flushes and one for
// checkpoints.
import type { Database, Statement as Prepared } from "bun:sqlite";
import { Checkpointer } from "./checkpoint.ts";
import { type Damage, findDamage, isDamage } from "./damage.ts";
import { LogFlush } from "./log-flush.ts";
import { openDatabase } from "./open.ts";
import { TroubleWatch } from "./problems.ts";
import { Readers } from "./readers.ts";
import { Sequences } from "./sequences.ts";
import type { Query, Statement } from "./sql.ts";
import { CommitError, type CommitOptions, type SequenceName, type Store, type Trouble } from "./store.ts";
import { Versions } from "./versions.ts";
import { Writer } from "./writer.ts";

/** How long a try to begin a transaction may block the event loop while another program holds the database. */
const LOCK_TRY_MS = 5;

/** A write without effect, to check whether writes are possible. */
const PROBE_WRITE: Statement = { sql: "update epoch set value = value where id = 1", rows: [[]] };

export type LocalStoreOptions = {
  directory: string;
  cacheMb: number;
  /** Milliseconds since 1970, for the names of backups and the table of migrations. */
  now: number;
  /** The initial content of a new database (image.ts). */
  image?: Uint8Array | undefined;
  /** Maximum bytes of waiting batches before new ones are rejected as `overloaded`; default 64 MiB. */
  queueBytes?: number;
  /** Called when the process must exit: the disk cannot be trusted, or another process took over (RELIABILITY check 5 and 8). */
  fatal(error: Error): void;
};

/** Opens (and migrates) the database in this directory and increments its epoch. */
export const openLocalStore = (options: LocalStoreOptions): LocalStore => {
  const { db, file, unlock } = openDatabase(options.directory, options);
  try {
    db.run("insert into epoch (id, value) values (1, 1) on conflict (id) do update set value = value + 1");
    const { value } = db.query("select value from epoch where id = 1").get() as { value: number };
    // After the start, the writer must not block the event loop: it waits for other programs by retrying, and for the disk on another
    // thread.
    db.run(`pragma busy_timeout=${LOCK_TRY_MS}`);
    db.run("pragma synchronous=normal");
    return new LocalStore(db, file, value, options, unlock);
  } catch (error) {
    db.close();
    unlock();
    throw error;
  }
};

/** Reads return only flushed data, so that no caller sees data that a power loss could undo (rule ST-26). */
export class LocalStore implements Store {
  readonly epoch: number;
  readonly writer: Writer;
  readonly #db: Database;
  readonly #reads = new Map<string, Prepared>();
  readonly #readers: Readers;
  readonly #checkpointer: Checkpointer;
  readonly #log: LogFlush;
  readonly #sequences: Sequences;
  readonly #unlock: () => void;
  #closing: Promise<void> | undefined;
  readonly #versions = new Versions();
  readonly #troubles = new TroubleWatch({ check: () => this.#check(), probe: () => this.commit([PROBE_WRITE]) });

  constructor(
    db: Database,
    file: string,
    epoch: number,
    { fatal, queueBytes }: Pick<LocalStoreOptions, "fatal" | "queueBytes">,
    unlock: () => void,
  ) {
    this.#db = db;
    this.epoch = epoch;
    this.#unlock = unlock;
    this.#readers = new Readers(file);
    this.#checkpointer = new Checkpointer(db, { file, fatal });
    this.#log = new LogFlush(file, { fatal });
    this.writer = new Writer(db, {
      epoch,
      fatal,
      queueBytes,
      flush: () => this.#log.flush(),
      committed: () => {
        this.#troubles.onWritten();
        this.#checkpointer.onCommit();
      },
      refused: (error) => this.#troubles.onRefused(error),
    });
    this.#sequences = new Sequences(this);
  }

  get trouble(): Trouble | undefined {
    return this.#troubles.current;
  }

  get shownVersion(): number {
    return this.#versions.shown;
  }

  get listedVersion(): number {
    return this.#versions.listed;
  }

  get callersVersion(): number {
    return this.#versions.callers;
  }

  get auditVersion(): number {
    return this.#versions.audit;
  }

  getVersion(workspace_id: string): number {
    return this.#versions.getVersion(workspace_id);
  }

  commit(batch: readonly Statement[], { about }: CommitOptions = {}): Promise<void> {
    return this.#versions.withIncrement(batch, about, () => this.writer.submit(batch));
  }

  async get<T>(query: Query<T>): Promise<T | undefined> {
    const row = this.#readValues(query)[0];
    if (this.writer.flushing) await this.writer.flushing;
    return row === undefined ? undefined : query.map(row as never);
  }

  async all<T>(query: Query<T>): Promise<T[]> {
    const rows = this.#readValues(query).map((row) => query.map(row as never));
    if (this.writer.flushing) await this.writer.flushing;
    return rows;
  }

  async scan<T>(query: Query<T>): Promise<T[]> {
    if (this.#closing) throw new CommitError("closed", "the store is closing");
    const rows = await this.#readers.scan(query).catch((error: unknown) => {
      throw isDamage(error) ? this.#troubles.onDamaged(error) : error;
    });
    await this.writer.flushing;
    return rows;
  }

  async reserve(sequence: SequenceName, count: number): Promise<number> {
    if (this.#closing) throw new CommitError("closed", "the store is closing");
    return this.#sequences.reserve(sequence, count);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#troubles.close();
    await this.writer.stop();
    this.#log.close();
    await this.#readers.close();
    try {
      await this.#checkpointer.close();
    } finally {
      for (const prepared of this.#reads.values()) prepared.finalize();
      this.#db.close();
      this.#unlock();
    }
  }

  #readValues({ sql, params }: Pick<Query<unknown>, "sql" | "params">): unknown[][] {
    try {
      return this.#prepare(sql).values(...(params as never[]));
    } catch (error) {
      throw isDamage(error) ? this.#troubles.onDamaged(error) : error;
    }
  }

  #check(): Promise<Damage | undefined> {
    const map = ([first]: unknown[]): string => String(first);
    return findDamage((sql, ...params) => this.#readers.scan({ sql, params, map }));
  }

  #prepare(sql: string): Prepared {
    if (this.#closing) throw new CommitError("closed", "the store is closing");
    let prepared = this.#reads.get(sql);
    if (!prepared) {
      prepared = this.#db.prepare(sql);
      this.#reads.set(sql, prepared);
    }
    return prepared;
  }
}
