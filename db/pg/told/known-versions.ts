// Versions as a node knows them that is not the only one to write. It hears of writes a moment later than a reader may come, so it asks before each
// request, once for all that wait: what it has kept is right when nothing was counted since.
import type { SQL } from "bun";
import { isAnswer } from "../refusal.ts";
import { RAISED } from "./raised.ts";

type Raised = { readonly by: string; readonly shown: string; readonly callers: string; readonly listed: string };

type Deps = {
  /** Of the primary. */
  connection(): Promise<Pick<SQL, "unsafe">>;
  /** The connection broke. */
  lost(): void;
};

export class KnownVersions {
  readonly #deps: Deps;
  #raised: Raised | undefined;
  #shown = 0;
  #callers = 0;
  #listed = 0;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Undefined where nobody counts, or the database did not say. */
  get shown(): number | undefined {
    return this.#raised && this.#shown;
  }

  get listed(): number | undefined {
    return this.#raised && this.#listed;
  }

  get callers(): number | undefined {
    return this.#raised && this.#callers;
  }

  /** Resolves when everything is known that was committed before the call. Never rejects: what is not known is not kept. */
  ask(): Promise<void> {
    // A question that is on its way may have been answered before.
    if (!this.#running) return this.#begin();
    this.#next ??= this.#running.then(() => {
      this.#next = undefined;
      return this.#begin();
    });
    return this.#next;
  }

  #begin(): Promise<void> {
    const running = this.#ask().finally(() => {
      if (this.#running === running) this.#running = undefined;
    });
    this.#running = running;
    return running;
  }

  async #ask(): Promise<void> {
    try {
      const connection = await this.#deps.connection();
      const [row]: Raised[] = await connection.unsafe(RAISED);
      const before = this.#raised;
      const isSame = row !== undefined && row.by === before?.by;
      if (!isSame || row.shown !== before.shown) this.#shown++;
      if (!isSame || row.listed !== before.listed) this.#listed++;
      if (!isSame || row.callers !== before.callers) this.#callers++;
      this.#raised = row;
    } catch (error) {
      this.#raised = undefined;
      if (!isAnswer(error)) this.#deps.lost();
    }
  }
}
