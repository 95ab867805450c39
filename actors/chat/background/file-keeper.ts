// Forgets files that no message has named for as long as they are kept, and then the bytes that nobody names any more (facts/chats 4.16).
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { Blobs } from "#db/blobs.ts";
import { deleteOrphansBefore } from "#db/chats/files.ts";
import type { Store } from "#db/engine/store.ts";
import { listHashes } from "#db/templates/files.ts";
import type { Chore } from "./upkeep.ts";

const EVERY_MS = 3_600_000;
const DAY_MS = 86_400_000;
const DEFAULT_DAYS = 30;

type Deps = {
  readonly store: Store;
  readonly blobs: Blobs;
  readonly clock: Pick<Clock, "now">;
  /** How long files without a message are kept; 0 for ever. */
  readonly days?: () => Promise<number>;
};

export class FileKeeper implements Chore {
  readonly #parts: Deps;
  #last: number;
  #running: Promise<void> = Promise.resolve();

  constructor(parts: Deps) {
    this.#parts = parts;
    this.#last = parts.clock.now();
  }

  sweep(): void {
    const now = this.#parts.clock.now();
    if (now - this.#last < EVERY_MS) return;
    this.#last = now;
    this.#running = this.#running.then(() => this.#forget(now));
  }

  async idle(): Promise<void> {
    await this.#running;
  }

  stop(): Promise<void> {
    this.#last = Number.POSITIVE_INFINITY;
    return this.idle();
  }

  async #forget(now: number): Promise<void> {
    const { store, blobs, days = async () => DEFAULT_DAYS } = this.#parts;
    try {
      const kept = await days();
      if (kept > 0) await store.commit([deleteOrphansBefore(now - kept * DAY_MS)]);
      await blobs.sweep(async () => new Set((await store.scan(listHashes())).map(({ hash }) => hash)));
    } catch (error) {
      log("chats").warn("unused files were not removed: {error}", { error });
    }
  }
}
