// Stores uploads in the database in pieces of one MiB, so that every node can read them and no node holds a whole file in memory.
import { open } from "node:fs/promises";
import type { Blob, SharedBlobs } from "../blobs.ts";
import type { Query, Statement, Value } from "../engine/sql.ts";
import type { Store } from "../engine/store.ts";

const CHUNK_BYTES = 1024 * 1024;
/** Files deleted per commit. */
const MAX_DELETES_PER_COMMIT = 100;

const toWrite = (sql: string, ...rows: Value[][]): Statement => ({ sql, rows, touches: [] });
const toRead = <T>(sql: string, params: Value[], map: (row: Value[]) => T): Query<T> => ({ sql, params, map });

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
    for (let offset = 0; offset < size; offset += CHUNK_BYTES) {
      const bytes = new Uint8Array(Math.min(CHUNK_BYTES, size - offset));
      for (let filled = 0; filled < bytes.length; ) {
        const { bytesRead } = await file.read(bytes, filled, bytes.length - filled, offset + filled);
        if (bytesRead === 0) throw new Error(`the upload ${hash} is shorter than it was`);
        filled += bytesRead;
      }
      const sql = "insert into blob_chunks (hash, n, bytes) values (?, ?, ?) on conflict (hash, n) do nothing";
      await this.#store.commit([toWrite(sql, [hash, offset / CHUNK_BYTES, bytes])]);
    }
    await this.#store.commit([
      toWrite("insert into blobs (hash, size) values (?, ?) on conflict (hash) do nothing", [hash, size]),
    ]);
  }

  async copyTo(hash: string, path: string): Promise<boolean> {
    const [size] = await this.#store.all(
      toRead("select size from blobs where hash = ?", [hash], ([one]) => Number(one)),
    );
    if (size === undefined) return false;
    const hasher = new Bun.CryptoHasher("sha256");
    await using file = await open(path, "wx", 0o600);
    for (let n = 0; n * CHUNK_BYTES < size; n++) {
      const sql = "select bytes from blob_chunks where hash = ? and n = ?";
      const [bytes] = await this.#store.all(toRead(sql, [hash, n], ([one]) => one as Uint8Array));
      if (!bytes) throw new Error(`a piece of the upload ${hash} is missing in the database`);
      hasher.update(bytes);
      for (let offset = 0; offset < bytes.length; ) offset += (await file.write(bytes, offset)).bytesWritten;
    }
    if (hasher.digest("hex") !== hash) throw new Error(`the upload ${hash} is damaged in the database`);
    return true;
  }

  list(): Promise<string[]> {
    const sql = "select hash from blobs union select hash from blob_chunks";
    return this.#store.all(toRead(sql, [], ([hash]) => String(hash)));
  }

  async remove(hashes: readonly string[]): Promise<void> {
    for (let start = 0; start < hashes.length; start += MAX_DELETES_PER_COMMIT) {
      const rows = hashes.slice(start, start + MAX_DELETES_PER_COMMIT).map((hash) => [hash]);
      await this.#store.commit([
        toWrite("delete from blobs where hash = ?", ...rows),
        toWrite("delete from blob_chunks where hash = ?", ...rows),
      ]);
    }
  }
}
