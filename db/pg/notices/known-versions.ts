// Versions on a node that is not the only writer. Notices of other nodes' writes may arrive too late for a reader. Therefore, the node asks
// the database before each request, once for all waiting requests: cached data is valid if the counters are unchanged.
import type { SQL } from "bun";
import { isAnswer } from "../refusal.ts";
import { SELECT_COUNTERS } from "./counters.ts";

type VersionCounters = {
  readonly by: string;
  readonly shown: string;
  readonly callers: string;
  readonly listed: string;
};

type Deps = {
  /** Returns a connection to the primary. */
  connection(): Promise<Pick<SQL, "unsafe">>;
  /** Called when the connection broke. */
  lost(): void;
};

export class KnownVersions {
  readonly #deps: Deps;
  #counters: VersionCounters | undefined;
  #shown = 0;
  #callers = 0;
  #listed = 0;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Undefined if a node does not count its changes, or if the database did not answer. */
  get shown(): number | undefined {
    return this.#counters && this.#shown;
  }

  get listed(): number | undefined {
    return this.#counters && this.#listed;
  }

  get callers(): number | undefined {
    return this.#counters && this.#callers;
  }

  /** Resolves when the versions cover everything committed before the call. Never rejects: without versions, nothing is cached. */
  refresh(): Promise<void> {
    // A pending query may have been answered before.
    if (!this.#running) return this.#begin();
    this.#next ??= this.#running.then(() => {
      this.#next = undefined;
      return this.#begin();
    });
    return this.#next;
  }

  #begin(): Promise<void> {
    const running = this.#loadCounters().finally(() => {
      if (this.#running === running) this.#running = undefined;
    });
    this.#running = running;
    return running;
  }

  async #loadCounters(): Promise<void> {
    try {
      const connection = await this.#deps.connection();
      const [row]: VersionCounters[] = await connection.unsafe(SELECT_COUNTERS);
      const before = this.#counters;
      const isSame = row !== undefined && row.by === before?.by;
      if (!isSame || row.shown !== before.shown) this.#shown++;
      if (!isSame || row.listed !== before.listed) this.#listed++;
      if (!isSame || row.callers !== before.callers) this.#callers++;
      this.#counters = row;
    } catch (error) {
      this.#counters = undefined;
      if (!isAnswer(error)) this.#deps.lost();
    }
  }
}
