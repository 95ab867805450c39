// A bucket over a real socket, whose store checks every signature and fails in the ways genuine ones do.
import { afterAll, afterEach, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Bucket } from "#base/network/bucket.ts";
import { BucketError } from "#base/network/bucket-error.ts";
import { type ObjectStore, SECRET_KEY, startObjectStore } from "#test/support/cluster/object-store.ts";
import { tempDirectory } from "#test/support/server.ts";

const folder = tempDirectory();
afterAll(() => folder[Symbol.dispose]());

let store: ObjectStore | undefined;
afterEach(() => store?.[Symbol.asyncDispose]());

const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

const openWorld = async (size = 300_000) => {
  store = startObjectStore();
  const bytes = new Uint8Array(size).map((_, i) => (i * 31 + (i >> 8)) & 255);
  const path = join(folder.path, `sent-${size}`);
  await Bun.write(path, bytes);
  const target = join(folder.path, "arrived");
  return { store, bucket: new Bucket(store.location, { answer_ms: 400 }), bytes, path, target, hash: sha256(bytes) };
};

const getFailure = async (work: Promise<unknown>): Promise<BucketError> => {
  const error = await work.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(BucketError);
  return error as BucketError;
};

test("[CL-33] a stored object exists and is returned byte for byte, even if it is empty", async () => {
  for (const size of [0, 1, 12_345_678]) {
    const { store, bucket, bytes, path, target, hash } = await openWorld(size);
    await bucket.put("slipway/one", path, size);
    expect(store.objects.get("slipway/one")?.length).toBe(size);
    expect(await bucket.getSize("slipway/one")).toBe(size);
    await bucket.getTo("slipway/one", target, hash);
    expect(Buffer.compare(readFileSync(target), bytes)).toBe(0);
    await bucket.remove("slipway/one");
    await bucket.remove("slipway/one");
    expect(await bucket.getSize("slipway/one")).toBeUndefined();
    await store[Symbol.asyncDispose]();
  }
});

test("[CL-33] requests to a store that is busy, disconnects or hangs are retried", async () => {
  const { store, bucket, bytes, path, target, hash } = await openWorld(100_000);
  const hung = Promise.withResolvers<Response>();
  let attempts = 0;
  store.inject((request) => {
    if (request.method !== "PUT") return undefined;
    attempts += 1;
    if (attempts === 1) return store.toErrorResponse(503, "SlowDown");
    return attempts === 2 ? hung.promise : undefined;
  });
  await bucket.put("slipway/one", path, bytes.length);
  expect(attempts).toBe(3);
  attempts = 0;
  const respondHalf = (): Response =>
    new Response(
      new ReadableStream({
        type: "direct",
        async pull(controller: ReadableStreamDirectController) {
          controller.write(bytes.slice(0, 50_000));
          await controller.flush();
          // The second response hangs halfway.
          if (attempts === 2) await hung.promise;
          controller.close();
        },
      } as never),
      { headers: { "content-length": String(bytes.length) } },
    );
  store.inject(() => {
    attempts += 1;
    return attempts < 3 ? respondHalf() : undefined;
  });
  await bucket.getTo("slipway/one", target, hash);
  expect(attempts).toBe(3);
  expect(Buffer.compare(readFileSync(target), bytes)).toBe(0);
  hung.resolve(new Response());
});

test("[CL-33] a store that stays unreachable is given up, with an error without a key or a signed URL", async () => {
  const { store, bucket, bytes, path } = await openWorld();
  store.inject(() => store.toErrorResponse(503, "SlowDown"));
  const busy = await getFailure(bucket.put("slipway/one", path, bytes.length));
  expect(busy.message).toContain("it refuses (503 SlowDown)");
  expect(store.requestLog.length).toBe(4);
  store.inject(() => store.toErrorResponse(403, "AccessDenied"));
  const denied = await getFailure(bucket.put("slipway/one", path, bytes.length));
  expect(denied.message).toContain("the key may not list, write, read and remove there (403 AccessDenied)");
  // Retrying does not help.
  expect(store.requestLog.length).toBe(5);
  await store[Symbol.asyncDispose]();
  const unreachable = await getFailure(bucket.check());
  expect(unreachable.message).toContain("it does not answer");
  expect(Bun.inspect([busy, denied, unreachable])).not.toMatch(/X-Amz|Signature=/);
  expect(Bun.inspect([busy, denied, unreachable, bucket])).not.toContain(SECRET_KEY);
});

test("[CL-33] bytes damaged in transit are sent again, and a false success is detected", async () => {
  const { store, bucket, bytes, path, target, hash } = await openWorld();
  let attempts = 0;
  store.inject((request) => {
    if (request.method !== "PUT") return undefined;
    attempts += 1;
    if (attempts === 1) return store.toErrorResponse(400, "BadDigest");
    // The store claims success, but stores nothing.
    return attempts === 2 ? new Response() : undefined;
  });
  await bucket.put("slipway/one", path, bytes.length);
  expect(attempts).toBe(3);
  expect(store.objects.get("slipway/one")).toEqual(bytes);
  // One bit of the response is changed: first once, then every time.
  const changed = bytes.slice();
  changed[100_000] = (changed[100_000] ?? 0) ^ 1;
  attempts = 0;
  store.inject(() => {
    attempts += 1;
    return attempts === 1 ? new Response(changed) : undefined;
  });
  await bucket.getTo("slipway/one", target, hash);
  expect(Buffer.compare(readFileSync(target), bytes)).toBe(0);
  store.inject(() => new Response(changed));
  const damaged = await getFailure(bucket.getTo("slipway/one", target, hash));
  expect(damaged.message).toContain("it gives other bytes than it was given");
});

test("[CL-34] a check says what to fix: the key, its secret, the region, the name, missing permissions", async () => {
  const { store } = await openWorld();
  const findProblem = async (overrides: object) =>
    (await getFailure(new Bucket({ ...store.location, ...overrides }, { answer_ms: 400 }).check())).message;
  await new Bucket(store.location).check();
  expect(store.objects.size).toBe(0);
  expect(await findProblem({ access_key: "AKIAOTHER" })).toContain("s3_access_key is not known there");
  expect(await findProblem({ secret_key: "other" })).toContain("s3_secret_key does not belong to s3_access_key");
  expect(await findProblem({ bucket: "elsewhere" })).toContain("there is no such bucket");
  store.inject((request) => (request.method === "DELETE" ? store.toErrorResponse(403, "AccessDenied") : undefined));
  expect(await findProblem({})).toContain("may not list, write, read and remove");
  store.inject(() => new Response(null, { status: 301 }));
  expect(await findProblem({})).toContain("cannot be used: it refuses (301)");
});
