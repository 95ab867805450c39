// Settings of object storage for the uploads of a cluster, in place of its database (docs/cluster.md).
import { baseUrl, matching, text } from "./kinds.ts";
import { optional, setting } from "./setting.ts";

export const bucketName = matching(
  /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/,
  "the name of a bucket: 3 to 63 lower-case letters, digits, dots and hyphens",
  "NAME",
);

export const objectPrefix = matching(
  /^([A-Za-z0-9][A-Za-z0-9._-]*\/)+$/,
  "names of letters, digits, dots, hyphens and underscores with a slash behind each, such as slipway/",
  "PREFIX",
);

export const STORAGE_SETTINGS = {
  s3_bucket: optional(bucketName, {
    group: "Cluster",
    help: "A bucket of S3-compatible storage that holds the bytes of uploads in place of the database. The same for all nodes. Needs s3_access_key and s3_secret_key.",
    absent: "uploads are in the database",
  }),
  s3_endpoint: optional(baseUrl, {
    group: "Cluster",
    help: "Where the storage answers, such as https://storage.example.com. The bucket is named in the path.",
    absent: "Amazon S3 in s3_region",
  }),
  s3_region: setting(matching(/^[a-z0-9-]{1,40}$/, "a region such as eu-central-1", "REGION"), "us-east-1", {
    group: "Cluster",
    help: "The region of the bucket. Most other storages than Amazon's take any.",
  }),
  s3_prefix: setting(objectPrefix, "slipway/", {
    group: "Cluster",
    help: "What the names of objects begin with. What was stored under another prefix is still found.",
  }),
  s3_access_key: optional(text, {
    group: "Cluster",
    help: "The id of the key that may write, read and remove objects of the bucket.",
    absent: "none",
    secret: true,
  }),
  s3_secret_key: optional(text, {
    group: "Cluster",
    help: "The secret of that key. Best in a file of its own.",
    absent: "none",
    secret: true,
  }),
};
