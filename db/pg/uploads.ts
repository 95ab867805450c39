// The shared storage for uploads of a cluster: its database, or a configured bucket.
import type { Clock } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import { Bucket } from "#base/network/bucket.ts";
import type { SharedBlobs } from "../blobs.ts";
import type { Store } from "../engine/store.ts";
import { UnsafeDatabaseError } from "../engine/unsafe.ts";
import { DatabaseBlobs } from "./blobs.ts";
import { BucketBlobs } from "./bucket-blobs.ts";
import { listStoredObjects } from "./expected-objects.ts";

type Settings = Pick<
  Config,
  "s3_access_key" | "s3_bucket" | "s3_endpoint" | "s3_prefix" | "s3_region" | "s3_secret_key"
>;

/** Returns the configured bucket; undefined if uploads are in the database. */
export const makeBucket = (config: Settings, clock: Clock): Bucket | undefined => {
  const { s3_bucket: bucket, s3_access_key: access_key, s3_secret_key: secret_key } = config;
  if (bucket === undefined || access_key === undefined || secret_key === undefined) return undefined;
  const { s3_endpoint, s3_region: region, s3_prefix: prefix } = config;
  return new Bucket({ endpoint: s3_endpoint?.origin, region, bucket, prefix, access_key, secret_key }, { clock });
};

/** Returns the nodes' shared storage of uploads. */
export const openSharedBlobs = (store: Pick<Store, "commit" | "all">, bucket: Bucket | undefined): SharedBlobs =>
  bucket ? new BucketBlobs(store, bucket) : new DatabaseBlobs(store);

/**
 * Rejects a bucket that cannot be written, read or cleaned, and one that contains none of the uploads that the database expects in it.
 * Throws BucketError, UnsafeDatabaseError, CommitError.
 */
export const checkUploads = async (bucket: Bucket | undefined, url: string): Promise<void> => {
  await bucket?.check();
  const problem = await describeBucketMismatch(bucket, await listStoredObjects(url));
  if (problem !== undefined) throw new UnsafeDatabaseError(problem);
};

/** Returns why this is not the bucket that the database refers to. `kept`: objects that should exist. Throws BucketError. */
export const describeBucketMismatch = async (
  bucket: Bucket | undefined,
  objects: readonly string[],
): Promise<string | undefined> => {
  if (objects.length === 0) return undefined;
  if (!bucket) return "uploads of this cluster are in object storage: set s3_bucket and what belongs to it";
  const sizes = await Promise.all(objects.map((object) => bucket.getSize(object)));
  if (sizes.some((size) => size !== undefined)) return undefined;
  return `the bucket ${bucket.name} has none of the uploads of this cluster: it is another one, or has lost them`;
};
