// Stores uploads in the database in pieces of one MiB, so that every node has them and none holds a file in memory.
import { open } from "node:fs/promises";
import type { Blob, SharedBlobs } from "../blobs.ts";
import type { Query, Statement, Value } from "../engine/sql.ts";
import type { Store } from "../engine/store.ts";

const CHUNK_BYTES = 1024 * 1024;
/** Files deleted per commit. */
const MAX_DELETES_PER_COMMIT = 100;

const write = (sql: string, ...rows: Value[][]): Statement => ({ sql, rows, touches: [] });
const read = <T>(sql: string, params: Value[], map: (row: Value[]) => T): Query<T> => ({ sql, params, map });

export class DatabaseBlobs implements SharedBlobs {
  readonly #store: Pick<Store, "commit" | "all">;

  constructor(store: Pick<Store, "commit" | "all">) {
    this.#store = store;
  }

  /**
   * Stores a file; its row in `blobs` is written last and makes it available. Rewrites existing files without checking: commits are
   * ordered, so a pending deletion of the same bytes comes first.
   */
  async store({ hash, size }: Blob, path: string): Promise<void> {
    await using file = await open(path, "r");
    for (let at = 0; at < size; at += CHUNK_BYTES) {
      const bytes = new Uint8Array(Math.min(CHUNK_BYTES, size - at));
      for (let got = 0; got < bytes.length; ) {
        const { bytesRead } = await file.read(bytes, got, bytes.length - got, at + got);
        if (bytesRead === 0) throw new Error(`the upload ${hash} is shorter than it was`);
        got += bytesRead;
      }
      const sql = "insert into blob_chunks (hash, n, bytes) values (?, ?, ?) on conflict (hash, n) do nothing";
      await this.#store.commit([write(sql, [hash, at / CHUNK_BYTES, bytes])]);
    }
    await this.#store.commit([
      write("insert into blobs (hash, size) values (?, ?) on conflict (hash) do nothing", [hash, size]),
    ]);
  }

  async copyTo(hash: string, path: string): Promise<boolean> {
    const [size] = await this.#store.all(read("select size from blobs where hash = ?", [hash], ([one]) => Number(one)));
    if (size === undefined) return false;
    const hasher = new Bun.CryptoHasher("sha256");
    await using file = await open(path, "wx", 0o600);
    for (let n = 0; n * CHUNK_BYTES < size; n++) {
      const sql = "select bytes from blob_chunks where hash = ? and n = ?";
      const [bytes] = await this.#store.all(read(sql, [hash, n], ([one]) => one as Uint8Array));
      if (!bytes) throw new Error(`a piece of the upload ${hash} is missing in the database`);
      hasher.update(bytes);
      for (let at = 0; at < bytes.length; ) at += (await file.write(bytes, at)).bytesWritten;
    }
    if (hasher.digest("hex") !== hash) throw new Error(`the upload ${hash} is damaged in the database`);
    return true;
  }

  list(): Promise<string[]> {
    const sql = "select hash from blobs union select hash from blob_chunks";
    return this.#store.all(read(sql, [], ([hash]) => String(hash)));
  }

  async remove(hashes: readonly string[]): Promise<void> {
    for (let at = 0; at < hashes.length; at += MAX_DELETES_PER_COMMIT) {
      const rows = hashes.slice(at, at + MAX_DELETES_PER_COMMIT).map((hash) => [hash]);
      await this.#store.commit([
        write("delete from blobs where hash = ?", ...rows),
        write("delete from blob_chunks where hash = ?", ...rows),
      ]);
    }
  }
}
