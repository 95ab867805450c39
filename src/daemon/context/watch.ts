// Signals changes in a set of folders. Best effort: periodic scans find changes that the system does not report (rule CX-5).
import { type FSWatcher, watch } from "node:fs";

const MOST = 256;

export class FolderWatch {
  readonly #wake: () => void;
  readonly #watchers = new Map<string, FSWatcher>();

  constructor(wake: () => void) {
    this.#wake = wake;
  }

  /** Watches exactly these folders. */
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
      // The folder was removed in the meantime, or the system is out of watches.
    }
  }

  close(): void {
    this.set([]);
  }
}
