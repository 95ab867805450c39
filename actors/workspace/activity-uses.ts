// Collects in memory which workspaces were used, and writes their last use every 60 seconds, so that traffic does not cause writes
// (facts/platform
// 2.7). Used by the workspace actors; flushed before the server stops.
import type { Clock, Timer } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { Service } from "../runtime/service.ts";

export const FLUSH_INTERVAL_MS = 60_000;

export class Uses implements Service {
  readonly #clock: Clock;
  readonly #write: (workspace_id: string) => Promise<unknown>;
  #used = new Set<string>();
  #writing: Promise<unknown> = Promise.resolve();
  #ticking: Timer | undefined;

  /** `write` updates the last use in the workspace's row. */
  constructor(clock: Clock, write: (workspace_id: string) => Promise<unknown>) {
    this.#clock = clock;
    this.#write = write;
  }

  /** Records that the workspace is being used. */
  note(workspace_id: string): void {
    this.#used.add(workspace_id);
  }

  /** Returns whether the workspace was used since the last write. The caller must write it then. */
  takeUsed(workspace_id: string): boolean {
    return this.#used.delete(workspace_id);
  }

  start(): void {
    this.#ticking = this.#clock.every(FLUSH_INTERVAL_MS, () => void this.flush());
  }

  /** Resolves when everything collected is written, including by earlier calls. A failed write is repeated with the next use. */
  async flush(): Promise<void> {
    const used = this.#used;
    this.#used = new Set();
    const before = this.#writing;
    const written = [...used].map((id) =>
      this.#write(id).catch((error) => {
        log("workspaces").warn("cannot record the use of workspace {id}: {error}", { id, error });
      }),
    );
    this.#writing = Promise.all([before, ...written]);
    await this.#writing;
  }

  /** Writes the collected uses without waiting. The workspaces may be on any node. */
  release(): void {
    void this.flush();
  }

  stop(): Promise<void> {
    this.#ticking?.cancel();
    return this.flush();
  }
}
