// The store on PostgreSQL: one group-committing writer, a few readers. Reads go to the primary, so they see every commit that resolved.
import { Sequences } from "../engine/sequences.ts";
import type { Query, Statement } from "../engine/sql.ts";
import { CommitError, type SequenceName, type Store } from "../engine/store.ts";
import { Versions } from "../engine/versions.ts";
import { queryText } from "./bind.ts";
import { checkDatabase } from "./checks.ts";
import { migratePostgres } from "./migrate.ts";
import { Primary } from "./primary.ts";
import { refusalOf } from "./refusal.ts";
import { PgReports } from "./reports.ts";
import { storableValue, storedValue } from "./stored-value.ts";
import { PgWriter } from "./writer.ts";

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
    if (this.#closing) throw new CommitError("closed", "the store is closing");
    try {
      const readers = await this.#primary.readers();
      const rows = await readers.unsafe(queryText(query.sql), query.params.map(storableValue) as never[]).values();
      return (rows as unknown as unknown[][]).map((row) => query.map(row.map(storedValue)));
    } catch (error) {
      throw refusalOf(error);
    }
  }

  async scan<T>(query: Query<T>): Promise<T[]> {
    const { report, params } = query;
    if (!report) return this.all(query);
    if (this.#closing) throw new CommitError("closed", "the store is closing");
    this.#reports ??= new PgReports();
    return [query.map([await this.#reports.run(await this.#primary.readers(), report, String(params[0]))])];
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
