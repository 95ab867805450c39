// Stores uploads in a bucket of object storage, with a database row for each object. The row is written before the object, so that the
// bucket is never listed, and objects without a row are never deleted. A row is valid once its object is complete.
import { AppError } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import type { Bucket } from "#base/network/bucket.ts";
import { BucketError } from "#base/network/bucket-error.ts";
import type { Blob, SharedBlobs } from "../blobs.ts";
import type { Query, Statement, Value } from "../engine/sql.ts";
import { CommitError, type Store } from "../engine/store.ts";
import { DatabaseBlobs } from "./blobs.ts";

/** An upload without a reference is deleted after this time, by the database's clock. Uploads take less time to be referenced. */
const CLEANUP_GRACE_MS = 2 * 3_600_000;
const MAX_DELETES_PER_COMMIT = 100;
const RETRY_AFTER_SECONDS = 10;

const toWrite = (sql: string, ...rows: Value[][]): Statement => ({ sql, rows, touches: [] });
const updateOne = (sql: string, ...row: Value[]): Statement => ({ sql, rows: [row], touches: [], expect: 1 });
const selectTexts = (sql: string, ...params: Value[]): Query<string> => ({
  sql,
  params,
  map: ([text]) => String(text),
});

const IS_OLD = "at < now() - cast(? as double precision) * interval '1 millisecond'";
const SELECT_OBJECT = "select object from blob_objects where hash = ? and state = 'kept' order by at desc limit 1";

type Options = { readonly spared_ms?: number };

export class BucketBlobs implements SharedBlobs {
  readonly #store: Pick<Store, "commit" | "all">;
  readonly #bucket: Bucket;
  /** Files that were stored before a bucket was configured. */
  readonly #legacyBlobs: DatabaseBlobs;
  readonly #graceMs: number;

  constructor(store: Pick<Store, "commit" | "all">, bucket: Bucket, { spared_ms = CLEANUP_GRACE_MS }: Options = {}) {
    this.#store = store;
    this.#bucket = bucket;
    this.#legacyBlobs = new DatabaseBlobs(store);
    this.#graceMs = spared_ms;
  }

  async store({ hash, size }: Blob, path: string): Promise<void> {
    await withBucketErrors("nothing was saved", async () => {
      if (await this.#protectExisting(hash, size)) return;
      const object = `${this.#bucket.prefix}${hash.slice(0, 2)}/${hash}-${uuid()}`;
      const insertRow = "insert into blob_objects (object, hash, size, state) values (?, ?, ?, 'coming')";
      await this.#store.commit([updateOne(insertRow, object, hash, size)]);
      await this.#bucket.put(object, path, size);
      const markStored = "update blob_objects set state = 'kept', at = now() where object = ? and state = 'coming'";
      await this.#store
        .commit([updateOne(markStored, object)])
        .catch((error: unknown) => this.#discardLateUpload(object, error));
    });
  }

  /** Deletes the object of an upload that took so long that its row was cleaned up as abandoned. */
  async #discardLateUpload(object: string, error: unknown): Promise<never> {
    if (!isStale(error)) throw error;
    await this.#bucket.remove(object);
    throw new AppError("overloaded", "The upload took too long: nothing was saved.", { cause: error });
  }

  /**
   * Returns whether the bucket already has the same bytes, and renews their protection from cleanup. Returns false if the bytes were just
   * marked for deletion.
   */
  async #protectExisting(hash: string, size: number): Promise<boolean> {
    const [object] = await this.#store.all(selectTexts(SELECT_OBJECT, hash));
    if (object === undefined || (await this.#bucket.getSize(object)) !== size) return false;
    try {
      const renew = "update blob_objects set at = now() where object = ? and state = 'kept'";
      await this.#store.commit([updateOne(renew, object)]);
      return true;
    } catch (error) {
      if (isStale(error)) return false;
      throw error;
    }
  }

  async copyTo(hash: string, path: string): Promise<boolean> {
    const [object] = await this.#store.all(selectTexts(SELECT_OBJECT, hash));
    if (object === undefined) return this.#legacyBlobs.copyTo(hash, path);
    await withBucketErrors("try again later", () => this.#bucket.getTo(object, path, hash));
    return true;
  }

  async list(): Promise<string[]> {
    const selectOld = selectTexts(
      `select distinct hash from blob_objects where state <> 'going' and ${IS_OLD}`,
      this.#graceMs,
    );
    return [...new Set([...(await this.#store.all(selectOld)), ...(await this.#legacyBlobs.list())])];
  }

  /** Marks files for deletion, unless the same bytes were uploaded concurrently; `clean` deletes them from the bucket. */
  async remove(hashes: readonly string[]): Promise<void> {
    const markDeleted = `update blob_objects set state = 'going' where hash = ? and ${IS_OLD}`;
    for (let start = 0; start < hashes.length; start += MAX_DELETES_PER_COMMIT) {
      const rows = hashes.slice(start, start + MAX_DELETES_PER_COMMIT).map((hash) => [hash, this.#graceMs]);
      await this.#store.commit([toWrite(markDeleted, ...rows)]);
    }
    await this.#legacyBlobs.remove(hashes);
  }

  async clean(): Promise<void> {
    const markAbandoned = `update blob_objects set state = 'going' where state = 'coming' and ${IS_OLD}`;
    await this.#store.commit([toWrite(markAbandoned, [this.#graceMs])]);
    for (;;) {
      const selectDeleted = selectTexts(
        "select object from blob_objects where state = 'going' order by object limit ?",
        MAX_DELETES_PER_COMMIT,
      );
      const objects = await this.#store.all(selectDeleted);
      if (objects.length === 0) return;
      for (const object of objects) await this.#bucket.remove(object);
      await this.#store.commit([
        toWrite("delete from blob_objects where object = ?", ...objects.map((object) => [object])),
      ]);
    }
  }
}

const isStale = (error: unknown): boolean => error instanceof CommitError && error.reason === "stale";

/** Converts errors of the bucket: callers are asked to retry, and the cause goes to the log. */
const withBucketErrors = async (consequence: string, work: () => Promise<void>): Promise<void> => {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof BucketError)) throw error;
    const message = `The storage of uploads cannot be used at the moment: ${consequence}.`;
    throw new AppError("overloaded", message, { cause: error, retry_after: RETRY_AFTER_SECONDS });
  }
};
