// Uploaded bytes on a real PostgreSQL, seen by two nodes with separate data directories.
import { afterEach, expect } from "bun:test";
import { existsSync } from "node:fs";
import { Blobs } from "#db/blobs.ts";
import { DatabaseBlobs } from "#db/pg/blobs.ts";
import { openPgStore, type PgStore } from "#db/pg/store.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createDatabase, type TestDatabase } from "#test/support/postgres.ts";
import { tempDirectory } from "#test/support/server.ts";

let testDatabase: TestDatabase | undefined;
let store: PgStore | undefined;
afterEach(async () => {
  await store?.close();
  await testDatabase?.remove();
});

const openNodes = async () => {
  testDatabase = await createDatabase();
  store = await openPgStore({ url: testDatabase.url, now: 0, fatal: () => {} });
  const shared = new DatabaseBlobs(store);
  const openNode = async () => {
    const directory = tempDirectory();
    const blobs = new Blobs(directory.path, shared);
    await blobs.recover(new Set(await shared.list()));
    return { blobs, [Symbol.dispose]: () => directory[Symbol.dispose]() };
  };
  return { shared, openNode, first: await openNode(), second: await openNode() };
};

const splitBytes = async function* (bytes: Uint8Array) {
  for (let offset = 0; offset < bytes.length; offset += 100_000) yield bytes.subarray(offset, offset + 100_000);
};

testNeeding([needs.postgres], "[CL-8] an upload to one node is read from another one, byte for byte", async () => {
  const { first, second, shared } = await openNodes();
  using _first = first;
  using _second = second;
  const sizes = [0, 1, 1024 * 1024, 5 * 1024 * 1024 + 17];
  for (const size of sizes) {
    const bytes = new Uint8Array(size).map((_, i) => (i * 31 + (i >> 8)) & 255);
    const { hash } = await first.blobs.put(splitBytes(bytes));
    // Concurrent readers fetch it once.
    const paths = await Promise.all([second.blobs.getPath(hash), second.blobs.getPath(hash)]);
    expect(new Set(paths).size).toBe(1);
    expect(Buffer.compare(await Bun.file(paths[0] as string).bytes(), bytes)).toBe(0);
    // Storing it again changes nothing.
    expect((await second.blobs.put(splitBytes(bytes))).hash).toBe(hash);
  }
  expect((await shared.list()).length).toBe(sizes.length);
});

testNeeding(
  [needs.postgres],
  "[CL-8] removes unreferenced uploads, including the unfinished ones of a terminated node",
  async () => {
    const { first, shared, openNode } = await openNodes();
    using _first = first;
    const bytes = (text: string) => splitBytes(new TextEncoder().encode(text));
    const kept = await first.blobs.put(bytes("kept"));
    const lost = await first.blobs.put(bytes("lost"));
    const unfinishedHash = "ab".repeat(32);
    await store?.commit([
      {
        sql: "insert into blob_chunks (hash, n, bytes) values (?, ?, ?)",
        rows: [[unfinishedHash, 0, new Uint8Array(3)]],
      },
    ]);
    expect((await shared.list()).sort()).toEqual([kept.hash, lost.hash, unfinishedHash].sort());
    // An incomplete file does not exist.
    expect(existsSync(await first.blobs.getPath(unfinishedHash))).toBe(false);
    using next = await openNode();
    await next.blobs.recover(new Set([kept.hash]));
    expect(await shared.list()).toEqual([kept.hash]);
    const late = await next.blobs.put(bytes("late"));
    await next.blobs.sweep(async () => new Set([kept.hash]));
    await next.blobs.sweep(async () => new Set([kept.hash]));
    expect((await shared.list()).length).toBe(2);
    await next.blobs.sweep(async () => new Set([kept.hash]));
    expect(await shared.list()).toEqual([kept.hash]);
    expect(existsSync(await next.blobs.getPath(late.hash))).toBe(false);
  },
);
