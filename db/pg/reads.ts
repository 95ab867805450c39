// Reads of a store on PostgreSQL: from the primary, so they see every commit that resolved.
import type { SQL } from "bun";
import type { Query } from "../engine/sql.ts";
import { CommitError } from "../engine/store.ts";
import { queryText } from "./bind.ts";
import type { Primary } from "./primary.ts";
import { isAnswer, refusalOf } from "./refusal.ts";
import { PgReports } from "./reports.ts";
import { storableValue, storedValue } from "./stored-value.ts";

/** How often a read is done again whose connection failed. */
const REPEATS = 2;

/** What both stores of PostgreSQL have in common: the one that writes, and that of a node which only reads. */
export abstract class PgReads {
  protected readonly primary: Primary;
  #reports: PgReports | undefined;
  #isClosed = false;

  constructor(primary: Primary) {
    this.primary = primary;
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

  /** Gives up the connections: what is on its way is `unknown`, and what comes next looks for the primary again. */
  reconnect(): void {
    this.primary.lost();
  }

  /** Later reads are refused as `closed`. */
  protected endReads(): void {
    this.#isClosed = true;
  }

  /** A connection that broke, or was not made in time because this process stood still, says nothing of the next one: reads are repeated. */
  async #read<T>(read: (readers: SQL) => Promise<T>): Promise<T> {
    for (let repeats = 0; ; repeats++) {
      if (this.#isClosed) throw new CommitError("closed", "the store is closing");
      const readers = await this.primary.readers();
      try {
        return await read(readers);
      } catch (error) {
        if (isAnswer(error)) throw refusalOf(error);
        // The second time the host itself may be gone: then another one has to be looked for, before anything is written.
        if (repeats > 0) this.primary.lost(readers);
        if (repeats >= REPEATS) throw refusalOf(error);
      }
    }
  }
}
