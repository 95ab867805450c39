// The files and folders that an SFTP client has opened, by handle. Bounded; all are closed with the session. [WN-5]
import type { FileHandle } from "node:fs/promises";

export type OpenFile = { readonly file: FileHandle; readonly isAppending: boolean };
/** `names` are the entries that have not been listed yet. */
export type OpenFolder = { readonly path: string; names: string[] };

const MAX_HANDLES = 1_024;

export class Handles {
  readonly #open = new Map<string, OpenFile | OpenFolder>();
  #next = 1;

  /** Throws if there are too many. */
  add(one: OpenFile | OpenFolder): string {
    if (this.#open.size >= MAX_HANDLES) throw new Error("too many open files");
    const handle = String(this.#next++);
    this.#open.set(handle, one);
    return handle;
  }

  getFile(handle: string): OpenFile {
    const found = this.#open.get(handle);
    if (!found || !("file" in found)) throw new Error("no such handle");
    return found;
  }

  getFolder(handle: string): OpenFolder {
    const found = this.#open.get(handle);
    if (!found || !("names" in found)) throw new Error("no such handle");
    return found;
  }

  async close(handle: string): Promise<void> {
    const found = this.#open.get(handle);
    if (!found) throw new Error("no such handle");
    this.#open.delete(handle);
    if ("file" in found) await found.file.close();
  }

  async closeAll(): Promise<void> {
    for (const handle of [...this.#open.keys()]) await this.close(handle).catch(() => {});
  }
}
