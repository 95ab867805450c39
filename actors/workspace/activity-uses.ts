// Collects in memory which workspaces were used, and writes the time of their last use once a minute, so that traffic does not cause a
// write for each use (facts/platform 2.7). Used by the workspace actors.
import type { Clock, Timer } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { Service } from "../runtime/service.ts";

export const FLUSH_INTERVAL_MS = 60_000;

export class Uses implements Service {
  readonly #clock: Clock;
  readonly #write: (workspace_id: string) => Promise<unknown>;
  #used = new Set<string>();
  #lastFlush: Promise<unknown> = Promise.resolve();
  #flushTimer: Timer | undefined;

  /** `write` updates the last use in the workspace's row. */
  constructor(clock: Clock, write: (workspace_id: string) => Promise<unknown>) {
    this.#clock = clock;
    this.#write = write;
  }

  /** Records that the workspace is being used. */
  note(workspace_id: string): void {
    this.#used.add(workspace_id);
  }

  /** Returns true if the workspace was used since the last write. The caller must then write the use. */
  takeUsed(workspace_id: string): boolean {
    return this.#used.delete(workspace_id);
  }

  start(): void {
    this.#flushTimer = this.#clock.every(FLUSH_INTERVAL_MS, () => void this.flush());
  }

  /** Resolves when all collected uses are written, including those of earlier calls. A failed write is repeated only with the next use. */
  async flush(): Promise<void> {
    const used = this.#used;
    this.#used = new Set();
    const previousFlush = this.#lastFlush;
    const written = [...used].map((id) =>
      this.#write(id).catch((error) => {
        log("workspaces").warn("cannot record the use of workspace {id}: {error}", { id, error });
      }),
    );
    this.#lastFlush = Promise.all([previousFlush, ...written]);
    await this.#lastFlush;
  }

  /** Starts writing the collected uses. Any node can write them. */
  release(): void {
    void this.flush();
  }

  stop(): Promise<void> {
    this.#flushTimer?.cancel();
    return this.flush();
  }
}
