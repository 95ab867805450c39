// Uploaded bytes, on disk under the data directory by the SHA-256 of their content: files/<first two digits>/<hash>. What `put` has
// answered is flushed, name and all, so that a row may name it (rule TP-2). Never overwrites, never trusts a name from outside.
import { rmSync } from "node:fs";
import { mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { AppError } from "#base/errors.ts";
import { failpoint } from "#base/failpoint.ts";
import { uuid } from "#base/ids.ts";

const HASH = /^[0-9a-f]{64}$/;

export type Blob = { readonly hash: string; readonly size: number };

export class Blobs {
  readonly #root: string;
  readonly #temporary: string;
  /** Hashes that came since the last sweep, and before it since the one before: their rows may still be on their way. */
  #recent = new Set<string>();
  #older = new Set<string>();

  /** `directory` is the data directory. */
  constructor(directory: string) {
    this.#root = join(directory, "files");
    this.#temporary = join(this.#root, "incoming");
  }

  /** Makes the folders and removes what a crash has left: half an upload, or a whole one that no row names. */
  async recover(named: ReadonlySet<string>): Promise<void> {
    await rm(this.#temporary, { recursive: true, force: true });
    await mkdir(this.#temporary, { recursive: true, mode: 0o700 });
    for (const folder of await readdir(this.#root)) {
      if (!/^[0-9a-f]{2}$/.test(folder)) continue;
      for (const name of await readdir(join(this.#root, folder))) {
        if (!named.has(name)) await rm(join(this.#root, folder, name), { force: true });
      }
    }
  }

  /** Takes the bytes as they come and resolves when they are on disk. An error of the source leaves nothing behind; 507 for a full disk. */
  async put(source: AsyncIterable<Uint8Array>): Promise<Blob> {
    const temporary = join(this.#temporary, uuid());
    try {
      const { hash, size } = await receive(temporary, source);
      const folder = join(this.#root, hash.slice(0, 2));
      await mkdir(folder, { recursive: true, mode: 0o700 });
      failpoint("in_upload");
      this.#recent.add(hash);
      await rename(temporary, join(folder, hash));
      await flushDirectory(folder);
      await flushDirectory(this.#root);
      return { hash, size };
    } catch (error) {
      await rm(temporary, { force: true });
      const { code } = error as { code?: string };
      if (code !== "ENOSPC" && code !== "EDQUOT") throw error;
      throw new AppError("storage_full", "The server's disk is full: nothing was saved.", { cause: error });
    }
  }

  /** Removes what no row names any more, except what came since the sweep before the last. `listNamed` is asked once. */
  async sweep(listNamed: () => Promise<ReadonlySet<string>>): Promise<void> {
    const spared = new Set([...this.#older, ...this.#recent]);
    this.#older = this.#recent;
    this.#recent = new Set();
    const named = await listNamed();
    for (const folder of await readdir(this.#root)) {
      if (!/^[0-9a-f]{2}$/.test(folder)) continue;
      for (const name of await readdir(join(this.#root, folder))) {
        if (named.has(name) || spared.has(name) || this.#recent.has(name)) continue;
        // At once, so that an upload of the same bytes comes either before the look or after the removal.
        rmSync(join(this.#root, folder, name), { force: true });
      }
    }
  }

  /** Where the bytes of this hash are; they are there when a row names them. */
  pathOf(hash: string): string {
    if (!HASH.test(hash)) throw new Error("not a hash");
    return join(this.#root, hash.slice(0, 2), hash);
  }
}

const receive = async (path: string, source: AsyncIterable<Uint8Array>): Promise<Blob> => {
  const hasher = new Bun.CryptoHasher("sha256");
  let size = 0;
  await using file = await open(path, "wx", 0o600);
  for await (const chunk of source) {
    hasher.update(chunk);
    size += chunk.byteLength;
    for (let at = 0; at < chunk.byteLength; ) at += (await file.write(chunk, at)).bytesWritten;
  }
  await file.sync();
  return { hash: hasher.digest("hex"), size };
};

const flushDirectory = async (path: string): Promise<void> => {
  await using directory = await open(path, "r");
  await directory.sync();
};
