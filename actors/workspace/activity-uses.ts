// Which workspaces were used since the last minute: collected in memory and written each 60 seconds, so that traffic does not become
// writes (facts/platform 2.7). Used by the workspace actors; the server empties it before it stops.
import type { Clock, Timer } from "#base/clock.ts";
import { log } from "#base/log.ts";

export const FLUSH_MS = 60_000;

export class Uses {
  readonly #write: (workspace_id: string) => Promise<unknown>;
  #used = new Set<string>();
  #writing: Promise<unknown> = Promise.resolve();
  #ticking: Timer | undefined;

  /** `write` notes in the workspace's row that it has been used. */
  constructor(write: (workspace_id: string) => Promise<unknown>) {
    this.#write = write;
  }

  /** The workspace has been used just now. */
  note(workspace_id: string): void {
    this.#used.add(workspace_id);
  }

  /** True when it was used since it was last written; anyone who asks writes it. */
  take(workspace_id: string): boolean {
    return this.#used.delete(workspace_id);
  }

  start(clock: Clock): void {
    this.#ticking = clock.every(FLUSH_MS, () => void this.flush());
  }

  /** Resolves when all that has been collected is written, also by a call before; what fails comes again with the next use. */
  async flush(): Promise<void> {
    const used = this.#used;
    this.#used = new Set();
    const before = this.#writing;
    const written = [...used].map((id) =>
      this.#write(id).catch((error) => {
        log("workspaces").warn("the use of workspace {id} was not noted: {error}", { id, error });
      }),
    );
    this.#writing = Promise.all([before, ...written]);
    await this.#writing;
  }

  stop(): void {
    this.#ticking?.cancel();
  }
}
