// Signals changes in a set of folders. Best effort: periodic scans find changes that the system does not report (rule CX-5).
import { type FSWatcher, watch } from "node:fs";

const MAX_WATCHED_FOLDERS = 256;

export class FolderWatch {
  readonly #wake: () => void;
  readonly #watchers = new Map<string, FSWatcher>();

  constructor(wake: () => void) {
    this.#wake = wake;
  }

  /** Watches exactly these folders. */
  set(folders: readonly string[]): void {
    const wantedFolders = new Set(folders.slice(0, MAX_WATCHED_FOLDERS));
    for (const [folder, watcher] of this.#watchers) {
      if (wantedFolders.has(folder)) continue;
      watcher.close();
      this.#watchers.delete(folder);
    }
    for (const folder of wantedFolders) if (!this.#watchers.has(folder)) this.#add(folder);
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
