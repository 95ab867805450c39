// Stores uploads in the data directory by the SHA-256 of their content: files/<first two digits>/<hash>. When `put` resolves, content and
// name are flushed, so that a row may reference the hash (rule TP-2). Never uses a name from outside as a path. In a cluster, the bytes are
// in shared storage (`SharedBlobs`), and the folder caches the files that this node has used.
import { existsSync, rmSync } from "node:fs";
import { mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { AppError } from "#base/errors.ts";
import { failpoint } from "#base/failpoint.ts";
import { uuid } from "#base/ids.ts";

const HASH = /^[0-9a-f]{64}$/;

export type Blob = { readonly hash: string; readonly size: number };

/** Shared storage that every node of a cluster can read. Never holds a whole file in memory. */
export interface SharedBlobs {
  /** Stores the bytes of this file durably. */
  store(blob: Blob, path: string): Promise<void>;
  /** Writes the bytes of the hash into a new file. Returns false when they do not exist. */
  copyTo(hash: string, path: string): Promise<boolean>;
  /** Returns the stored hashes, including partial ones that a crashed node left. */
  list(): Promise<string[]>;
  remove(hashes: readonly string[]): Promise<void>;
  /** Finishes deletions that may take long or fail. */
  clean?(): Promise<void>;
}

export class Blobs {
  readonly #root: string;
  readonly #temporary: string;
  readonly #sharedBlobs: SharedBlobs | undefined;
  readonly #isShared: boolean;
  readonly #downloads = new Map<string, Promise<void>>();
  /** Hashes stored since the last sweep, and between the two sweeps before it. Their rows may not be committed yet. */
  #recentHashes = new Set<string>();
  #olderHashes = new Set<string>();
  /** Hashes in shared storage that were unreferenced at the last sweep. Another node may have been about to reference them. */
  #unreferenced: ReadonlySet<string> = new Set();

  /** `directory` is the data directory. `isShared`: other nodes use the shared storage at the same time. */
  constructor(directory: string, shared?: SharedBlobs, isShared = false) {
    this.#root = join(directory, "files");
    this.#temporary = join(this.#root, "incoming");
    this.#sharedBlobs = shared;
    this.#isShared = isShared;
  }

  /**
   * Creates the folders and deletes the leftovers of a crash: partial uploads, and complete uploads that no row references. Cleans the
   * shared storage only if no other node uses it.
   */
  async recover(referenced: ReadonlySet<string>, isAlone = true): Promise<void> {
    await rm(this.#temporary, { recursive: true, force: true });
    await mkdir(this.#temporary, { recursive: true, mode: 0o700 });
    for (const folder of await readdir(this.#root)) {
      if (!/^[0-9a-f]{2}$/.test(folder)) continue;
      for (const name of await readdir(join(this.#root, folder))) {
        if (!referenced.has(name)) await rm(join(this.#root, folder, name), { force: true });
      }
    }
    if (!isAlone) return;
    await this.#sharedBlobs?.remove((await this.#sharedBlobs.list()).filter((hash) => !referenced.has(hash)));
  }

  /**
   * Stores a stream of bytes, and resolves when they are on disk. Stores nothing if the source throws an error. Rejects with 507 for a full
   * disk.
   */
  async put(source: AsyncIterable<Uint8Array>): Promise<Blob> {
    const temporary = join(this.#temporary, uuid());
    try {
      const { hash, size } = await receive(temporary, source);
      const folder = join(this.#root, hash.slice(0, 2));
      await mkdir(folder, { recursive: true, mode: 0o700 });
      failpoint("in_upload");
      this.#recentHashes.add(hash);
      await this.#sharedBlobs?.store({ hash, size }, temporary);
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

  /** Deletes unreferenced files, except those stored since the sweep before the last one. Calls `listReferenced` once. */
  async sweep(listReferenced: () => Promise<ReadonlySet<string>>): Promise<void> {
    const recentHashes = new Set([...this.#olderHashes, ...this.#recentHashes]);
    this.#olderHashes = this.#recentHashes;
    this.#recentHashes = new Set();
    const referenced = await listReferenced();
    for (const folder of await readdir(this.#root)) {
      if (!/^[0-9a-f]{2}$/.test(folder)) continue;
      for (const name of await readdir(join(this.#root, folder))) {
        if (referenced.has(name) || recentHashes.has(name) || this.#recentHashes.has(name)) continue;
        // Synchronous, so that an upload of the same bytes happens either before the check or after the deletion.
        rmSync(join(this.#root, folder, name), { force: true });
      }
    }
    const stored = (await this.#sharedBlobs?.list()) ?? [];
    const unreferenced = stored.filter(
      (hash) => !referenced.has(hash) && !recentHashes.has(hash) && !this.#recentHashes.has(hash),
    );
    const removable = this.#isShared ? unreferenced.filter((hash) => this.#unreferenced.has(hash)) : unreferenced;
    this.#unreferenced = new Set(unreferenced);
    await this.#sharedBlobs?.remove(removable);
    await this.#sharedBlobs?.clean?.();
  }

  /** Returns the file with the bytes of this hash, which exists if a row references it. Fetches it first from shared storage. */
  async getPath(hash: string): Promise<string> {
    if (!HASH.test(hash)) throw new Error("not a hash");
    const path = join(this.#root, hash.slice(0, 2), hash);
    if (!this.#sharedBlobs || existsSync(path)) return path;
    let download = this.#downloads.get(hash);
    if (!download) {
      download = this.#fetch(this.#sharedBlobs, hash, path).finally(() => this.#downloads.delete(hash));
      this.#downloads.set(hash, download);
    }
    await download;
    return path;
  }

  async #fetch(shared: SharedBlobs, hash: string, path: string): Promise<void> {
    const temporary = join(this.#temporary, uuid());
    try {
      // If the bytes are missing, the reader finds no file, as on a single machine.
      if (!(await shared.copyTo(hash, temporary))) return;
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      await rename(temporary, path);
    } finally {
      await rm(temporary, { force: true });
    }
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
