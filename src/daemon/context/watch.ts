// Wakes anyone who waits when something changes in one of a set of folders. Best effort: what the system does not tell is found by looking
// again now and then (rule CX-5).
import { type FSWatcher, watch } from "node:fs";

const MOST = 256;

export class FolderWatch {
  readonly #wake: () => void;
  readonly #watchers = new Map<string, FSWatcher>();

  constructor(wake: () => void) {
    this.#wake = wake;
  }

  /** Watches these folders, and no other any more. */
  set(folders: readonly string[]): void {
    const wanted = new Set(folders.slice(0, MOST));
    for (const [folder, watcher] of this.#watchers) {
      if (wanted.has(folder)) continue;
      watcher.close();
      this.#watchers.delete(folder);
    }
    for (const folder of wanted) if (!this.#watchers.has(folder)) this.#add(folder);
  }

  #add(folder: string): void {
    try {
      const watcher = watch(folder, { persistent: false }, this.#wake);
      watcher.on("error", () => {
        watcher.close();
        this.#watchers.delete(folder);
      });
      this.#watchers.set(folder, watcher);
    } catch {
      // Gone in the meantime, or the system has no more watches to give.
    }
  }

  close(): void {
    this.set([]);
  }
}
