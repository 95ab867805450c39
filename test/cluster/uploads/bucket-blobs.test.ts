// Uploads of a cluster in a bucket: rows on a real PostgreSQL, objects in a separate store.
import { afterEach, expect } from "bun:test";
import { existsSync } from "node:fs";
import { AppError } from "#base/errors.ts";
import { Bucket } from "#base/network/bucket.ts";
import { Blobs } from "#db/blobs.ts";
import { DatabaseBlobs } from "#db/pg/blobs.ts";
import { BucketBlobs } from "#db/pg/bucket-blobs.ts";
import { openPgStore, type PgStore } from "#db/pg/store.ts";
import { startObjectStore } from "#test/support/cluster/object-store.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createDatabase, type TestDatabase } from "#test/support/postgres.ts";
import { tempDirectory } from "#test/support/server.ts";

let testDatabase: TestDatabase | undefined;
let database: PgStore | undefined;
afterEach(async () => {
  await database?.close();
  await testDatabase?.remove();
});

const openWorld = async () => {
  testDatabase = await createDatabase();
  const pgStore = await openPgStore({ url: testDatabase.url, now: 0, fatal: () => {} });
  database = pgStore;
  const store = startObjectStore();
  const bucket = new Bucket(store.location, { answer_ms: 300 });
  // Recent objects are not spared here: only the rows decide.
  const shared = new BucketBlobs(pgStore, bucket, { spared_ms: 0 });
  const folders: Disposable[] = [];
  const openNode = async () => {
    const directory = tempDirectory();
    folders.push(directory);
    const blobs = new Blobs(directory.path, shared);
    await blobs.recover(new Set(), false);
    return blobs;
  };
  const listStates = (): Promise<string[]> =>
    pgStore.all({ sql: "select state from blob_objects order by at", params: [], map: ([state]) => String(state) });
  return {
    store,
    bucket,
    pgStore,
    shared,
    openNode,
    listStates,
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]();
      for (const folder of folders) folder[Symbol.dispose]();
    },
  };
};

const bytes = (text: string) => new Blob([text]).stream() as unknown as AsyncIterable<Uint8Array>;
const sha256 = (text: string): string => new Bun.CryptoHasher("sha256").update(text).digest("hex");

testNeeding(
  [needs.postgres],
  "[CL-33] an upload that one node has stored in the bucket is read by another",
  async () => {
    await using world = await openWorld();
    const [firstNode, secondNode] = [await world.openNode(), await world.openNode()];
    const { hash, size } = await firstNode.put(bytes("an upload"));
    expect([...world.store.objects.keys()]).toEqual([expect.stringContaining(`slipway/${hash.slice(0, 2)}/${hash}-`)]);
    expect(await Bun.file(await secondNode.getPath(hash)).text()).toBe("an upload");
    // Uploading it again sends nothing.
    await secondNode.put(bytes("an upload"));
    expect(world.store.objects.size).toBe(1);
    // Unless it no longer exists.
    world.store.objects.clear();
    await secondNode.put(bytes("an upload"));
    expect(await Bun.file(await (await world.openNode()).getPath(hash)).text()).toBe("an upload");
    expect(size).toBe(9);
  },
);

testNeeding(
  [needs.postgres],
  "[CL-33] an upload exists only once the bucket has all of it, whatever fails",
  async () => {
    await using world = await openWorld();
    const node = await world.openNode();
    world.store.inject((request) =>
      request.method === "PUT" ? world.store.toErrorResponse(503, "SlowDown") : undefined,
    );
    const refused = await node.put(bytes("one")).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(AppError);
    expect(refused).toMatchObject({ kind: "overloaded", retry_after: 10 });
    expect(await world.listStates()).toEqual(["coming"]);
    expect(existsSync(await node.getPath(sha256("one")))).toBe(false);
    // Accepted, but the response is lost: the row is invalid, and the object is removed with it.
    world.store.inject((request) => (request.method === "HEAD" ? world.store.toErrorResponse(500, "") : undefined));
    expect(await node.put(bytes("two")).catch((error: unknown) => error)).toBeInstanceOf(AppError);
    expect(world.store.objects.size).toBe(1);
    world.store.inject(undefined);
    await node.put(bytes("three"));
    await node.sweep(async () => new Set([sha256("three")]));
    expect(await world.listStates()).toEqual(["kept"]);
    expect(world.store.objects.size).toBe(1);
    // A reader gets a retryable error, never damaged data.
    const otherNode = await world.openNode();
    world.store.inject(() => new Response("threE"));
    expect(await otherNode.getPath(sha256("three")).catch((error: unknown) => error)).toMatchObject({
      kind: "overloaded",
    });
    world.store.inject(undefined);
    expect(await Bun.file(await otherNode.getPath(sha256("three"))).text()).toBe("three");
  },
);

testNeeding(
  [needs.postgres],
  "[CL-35] unreferenced uploads are removed, and a removal never affects a later upload of the same bytes",
  async () => {
    await using world = await openWorld();
    const node = await world.openNode();
    const { hash } = await node.put(bytes("one"));
    await world.shared.remove([hash]);
    // The removed object is still in the bucket when the same bytes are uploaded again.
    expect(world.store.objects.size).toBe(1);
    await node.put(bytes("one"));
    expect(world.store.objects.size).toBe(2);
    await world.shared.clean();
    expect(await world.listStates()).toEqual(["kept"]);
    expect(await Bun.file(await (await world.openNode()).getPath(hash)).text()).toBe("one");
    // An upload whose row is removed while it is in progress is rejected on arrival.
    world.store.inject(async (request) => {
      if (request.method === "PUT") await world.shared.clean();
      return undefined;
    });
    expect(await node.put(bytes("late")).catch((error: unknown) => error)).toMatchObject({ kind: "overloaded" });
    world.store.inject(undefined);
    // Objects that cannot be removed now are removed later.
    await world.shared.remove([hash]);
    world.store.inject((request) =>
      request.method === "DELETE" ? world.store.toErrorResponse(503, "SlowDown") : undefined,
    );
    await expect(world.shared.clean()).rejects.toThrow("503 SlowDown");
    world.store.inject(undefined);
    await world.shared.clean();
    expect(await world.listStates()).toEqual([]);
    expect(world.store.objects.size).toBe(0);
  },
);

testNeeding(
  [needs.postgres],
  "[CL-35] a recent upload is not removed, and a repeated upload counts as recent",
  async () => {
    await using world = await openWorld();
    const blobs = new BucketBlobs(world.pgStore, world.bucket);
    const node = await world.openNode();
    const { hash } = await node.put(bytes("one"));
    expect(await blobs.list()).toEqual([]);
    await blobs.remove([hash]);
    expect(await world.listStates()).toEqual(["kept"]);
    await world.pgStore.commit([{ sql: "update blob_objects set at = at - interval '3 hours'", rows: [[]] }]);
    expect(await blobs.list()).toEqual([hash]);
    await node.put(bytes("one"));
    await blobs.remove([hash]);
    expect(await world.listStates()).toEqual(["kept"]);
    expect(world.store.requestLog.filter((request) => request.startsWith("PUT"))).toHaveLength(1);
  },
);

testNeeding([needs.postgres], "[CL-33] an upload from before the bucket is read from the database", async () => {
  await using world = await openWorld();
  const earlier = tempDirectory();
  using _ = earlier;
  const blobs = new Blobs(earlier.path, new DatabaseBlobs(world.pgStore));
  await blobs.recover(new Set(), false);
  const { hash } = await blobs.put(bytes("long ago"));
  const node = await world.openNode();
  expect(await Bun.file(await node.getPath(hash)).text()).toBe("long ago");
  expect(await world.shared.list()).toEqual([hash]);
  await world.shared.remove([hash]);
  expect(await world.shared.list()).toEqual([]);
});
