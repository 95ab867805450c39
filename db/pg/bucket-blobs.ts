// Stores uploads in a bucket of object storage, with a database row for each object. The row is written before the object, so that the
// bucket is never listed, and objects without a row are never deleted. A row is valid once its object is complete.
import { AppError } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import type { Bucket } from "#base/network/bucket.ts";
import { BucketError } from "#base/network/bucket-error.ts";
import type { Blob, KeptElsewhere } from "../blobs.ts";
import type { Query, Statement, Value } from "../engine/sql.ts";
import { CommitError, type Store } from "../engine/store.ts";
import { DatabaseBlobs } from "./blobs.ts";

/** Longer than an upload takes, from its first row to the row that references it. By the database's clock. */
const SPARED_MS = 2 * 3_600_000;
const AT_ONCE = 100;
const TRY_AGAIN_SECONDS = 10;

const write = (sql: string, ...rows: Value[][]): Statement => ({ sql, rows, touches: [] });
const one = (sql: string, ...row: Value[]): Statement => ({ sql, rows: [row], touches: [], expect: 1 });
const texts = (sql: string, ...params: Value[]): Query<string> => ({ sql, params, map: ([text]) => String(text) });

const OLD = "at < now() - cast(? as double precision) * interval '1 millisecond'";
const OBJECTS_OF = "select object from blob_objects where hash = ? and state = 'kept' order by at desc limit 1";

type Options = { readonly spared_ms?: number };

export class BucketBlobs implements KeptElsewhere {
  readonly #store: Pick<Store, "commit" | "all">;
  readonly #bucket: Bucket;
  /** Files stored before a bucket was configured. */
  readonly #earlier: DatabaseBlobs;
  readonly #spared_ms: number;

  constructor(store: Pick<Store, "commit" | "all">, bucket: Bucket, { spared_ms = SPARED_MS }: Options = {}) {
    this.#store = store;
    this.#bucket = bucket;
    this.#earlier = new DatabaseBlobs(store);
    this.#spared_ms = spared_ms;
  }

  async keep({ hash, size }: Blob, path: string): Promise<void> {
    await asked("nothing was saved", async () => {
      if (await this.#isThere(hash, size)) return;
      const object = `${this.#bucket.prefix}${hash.slice(0, 2)}/${hash}-${uuid()}`;
      const comes = "insert into blob_objects (object, hash, size, state) values (?, ?, ?, 'coming')";
      await this.#store.commit([one(comes, object, hash, size)]);
      await this.#bucket.put(object, path, size);
      const is = "update blob_objects set state = 'kept', at = now() where object = ? and state = 'coming'";
      await this.#store.commit([one(is, object)]).catch((error: unknown) => this.#tooLate(object, error));
    });
  }

  /** The upload took so long that its row was cleaned up as abandoned, so the object is deleted. */
  async #tooLate(object: string, error: unknown): Promise<never> {
    if (!isStale(error)) throw error;
    await this.#bucket.remove(object);
    throw new AppError("overloaded", "The upload took too long: nothing was saved.", { cause: error });
  }

  /**
   * Returns whether the bucket already has the same bytes. If so, protects them from cleanup again. Returns false if they were just marked
   * for deletion.
   */
  async #isThere(hash: string, size: number): Promise<boolean> {
    const [object] = await this.#store.all(texts(OBJECTS_OF, hash));
    if (object === undefined || (await this.#bucket.sizeOf(object)) !== size) return false;
    try {
      const again = "update blob_objects set at = now() where object = ? and state = 'kept'";
      await this.#store.commit([one(again, object)]);
      return true;
    } catch (error) {
      if (isStale(error)) return false;
      throw error;
    }
  }

  async copyTo(hash: string, path: string): Promise<boolean> {
    const [object] = await this.#store.all(texts(OBJECTS_OF, hash));
    if (object === undefined) return this.#earlier.copyTo(hash, path);
    await asked("try again later", () => this.#bucket.getTo(object, path, hash));
    return true;
  }

  async list(): Promise<string[]> {
    const old = texts(`select distinct hash from blob_objects where state <> 'going' and ${OLD}`, this.#spared_ms);
    return [...new Set([...(await this.#store.all(old)), ...(await this.#earlier.list())])];
  }

  /** Marks files for deletion, unless the same bytes were uploaded concurrently; `clean` deletes them from the bucket. */
  async remove(hashes: readonly string[]): Promise<void> {
    const goes = `update blob_objects set state = 'going' where hash = ? and ${OLD}`;
    for (let at = 0; at < hashes.length; at += AT_ONCE) {
      const rows = hashes.slice(at, at + AT_ONCE).map((hash) => [hash, this.#spared_ms]);
      await this.#store.commit([write(goes, ...rows)]);
    }
    await this.#earlier.remove(hashes);
  }

  async clean(): Promise<void> {
    const never = `update blob_objects set state = 'going' where state = 'coming' and ${OLD}`;
    await this.#store.commit([write(never, [this.#spared_ms])]);
    for (;;) {
      const going = texts("select object from blob_objects where state = 'going' order by object limit ?", AT_ONCE);
      const objects = await this.#store.all(going);
      if (objects.length === 0) return;
      for (const object of objects) await this.#bucket.remove(object);
      await this.#store.commit([
        write("delete from blob_objects where object = ?", ...objects.map((object) => [object])),
      ]);
    }
  }
}

const isStale = (error: unknown): boolean => error instanceof CommitError && error.reason === "stale";

/** Converts errors of the bucket: callers are asked to retry, and the cause goes to the log. */
const asked = async (what: string, work: () => Promise<void>): Promise<void> => {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof BucketError)) throw error;
    const message = `The storage of uploads cannot be used at the moment: ${what}.`;
    throw new AppError("overloaded", message, { cause: error, retry_after: TRY_AGAIN_SECONDS });
  }
};
