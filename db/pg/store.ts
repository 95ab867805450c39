// The store on PostgreSQL: one group-committing writer, a few readers. Reads go to the primary, so they see every commit that resolved.
import type { SQL } from "bun";
import { Sequences } from "../engine/sequences.ts";
import type { Query, Statement } from "../engine/sql.ts";
import { CommitError, type SequenceName, type Store } from "../engine/store.ts";
import { Versions } from "../engine/versions.ts";
import { queryText } from "./bind.ts";
import { checkDatabase } from "./checks.ts";
import { migratePostgres } from "./migrate.ts";
import { Primary } from "./primary.ts";
import { isAnswer, refusalOf } from "./refusal.ts";
import { PgReports } from "./reports.ts";
import { storableValue, storedValue } from "./stored-value.ts";
import { PgWriter } from "./writer.ts";

/** How often a read is done again whose connection failed. */
const READ_REPEATS = 2;

export type PgStoreOptions = {
  /** postgres://user:password@host:port[,host:port...]/database. Holds a password: never logged. */
  url: string;
  /** Milliseconds since 1970, for the table of migrations. */
  now: number;
  queueBytes?: number;
  /** Another node has taken over: the process must stop. */
  fatal(error: Error): void;
};

/** Connects, checks the database, migrates it and raises its epoch. Throws UnsafeDatabaseError, NewerDatabaseError, CommitError. */
export const openPgStore = async (options: PgStoreOptions): Promise<PgStore> => {
  const primary = new Primary(options.url);
  try {
    const connection = await primary.writer();
    await checkDatabase(connection);
    await migratePostgres(connection, options);
    const [{ value }] = await connection.unsafe(
      "insert into epoch (id, value) values (1, 1) on conflict (id) do update set value = epoch.value + 1 returning value",
    );
    return new PgStore(primary, Number(value), options);
  } catch (error) {
    await primary.close();
    throw error;
  }
};

export class PgStore implements Store {
  readonly epoch: number;
  readonly writer: PgWriter;
  readonly #primary: Primary;
  readonly #sequences: Sequences;
  readonly #versions = new Versions();
  #reports: PgReports | undefined;
  #closing: Promise<void> | undefined;

  constructor(primary: Primary, epoch: number, { fatal, queueBytes }: Pick<PgStoreOptions, "fatal" | "queueBytes">) {
    this.#primary = primary;
    this.epoch = epoch;
    this.writer = new PgWriter({
      primary,
      fatal,
      queueBytes,
      guard: { text: "select own_epoch($1)", params: [epoch] },
    });
    this.#sequences = new Sequences(this);
  }

  get shownVersion(): number {
    return this.#versions.shown;
  }

  get callersVersion(): number {
    return this.#versions.callers;
  }

  versionOf(workspace_id: string): number {
    return this.#versions.of(workspace_id);
  }

  commit(batch: readonly Statement[], about?: string): Promise<void> {
    return this.#versions.around(batch, about, () => this.writer.submit(batch));
  }

  async get<T>(query: Query<T>): Promise<T | undefined> {
    return (await this.all(query))[0];
  }

  async all<T>(query: Query<T>): Promise<T[]> {
    const rows = await this.#read((readers) =>
      readers.unsafe(queryText(query.sql), query.params.map(storableValue) as never[]).values(),
    );
    return (rows as unknown as unknown[][]).map((row) => query.map(row.map(storedValue)));
  }

  async scan<T>(query: Query<T>): Promise<T[]> {
    const { report, params } = query;
    if (!report) return this.all(query);
    this.#reports ??= new PgReports();
    const reports = this.#reports;
    return [query.map([await this.#read((readers) => reports.run(readers, report, String(params[0])))])];
  }

  /** A connection that broke, or was not made in time because this process stood still, says nothing of the next one: reads are repeated. */
  async #read<T>(read: (readers: SQL) => Promise<T>): Promise<T> {
    for (let repeats = 0; ; repeats++) {
      if (this.#closing) throw new CommitError("closed", "the store is closing");
      const readers = await this.#primary.readers();
      try {
        return await read(readers);
      } catch (error) {
        if (isAnswer(error)) throw refusalOf(error);
        // The second time the host itself may be gone: then another one has to be looked for, before anything is written.
        if (repeats > 0) this.#primary.lost(readers);
        if (repeats >= READ_REPEATS) throw refusalOf(error);
      }
    }
  }

  async reserve(sequence: SequenceName, count: number): Promise<number> {
    if (this.#closing) throw new CommitError("closed", "the store is closing");
    return this.#sequences.reserve(sequence, count);
  }

  /** Gives up the connections: what is on its way is `unknown`, and what comes next looks for the primary again. */
  reconnect(): void {
    this.#primary.lost();
  }

  close(): Promise<void> {
    this.#closing ??= this.writer.stop().then(() => this.#primary.close());
    return this.#closing;
  }
}
