// Object storage settings for the uploads of a cluster, in place of its database (docs/cluster.md).
import { baseUrl, matching, text } from "./kinds.ts";
import { optional, setting } from "./setting.ts";

export const bucketName = matching(
  /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/,
  "the name of a bucket: 3 to 63 lower-case letters, digits, dots and hyphens",
  "NAME",
);

export const objectPrefix = matching(
  /^([A-Za-z0-9][A-Za-z0-9._-]*\/)+$/,
  "path segments of letters, digits, dots, hyphens and underscores, each followed by a slash, such as slipway/",
  "PREFIX",
);

export const STORAGE_SETTINGS = {
  s3_bucket: optional(bucketName, {
    group: "Cluster",
    help: "An S3-compatible bucket that stores uploads instead of the database. The same on all nodes. Needs s3_access_key and s3_secret_key.",
    absent: "uploads are stored in the database",
  }),
  s3_endpoint: optional(baseUrl, {
    group: "Cluster",
    help: "The URL of the storage, such as https://storage.example.com. The bucket is added to the path.",
    absent: "Amazon S3 in s3_region",
  }),
  s3_region: setting(matching(/^[a-z0-9-]{1,40}$/, "a region such as eu-central-1", "REGION"), "us-east-1", {
    group: "Cluster",
    help: "The region of the bucket. Most storage other than Amazon S3 accepts any.",
  }),
  s3_prefix: setting(objectPrefix, "slipway/", {
    group: "Cluster",
    help: "The prefix of object names. Objects stored under another prefix are still found.",
  }),
  s3_access_key: optional(text, {
    group: "Cluster",
    help: "The ID of an access key that can write, read and delete objects of the bucket.",
    absent: "none",
    secret: true,
  }),
  s3_secret_key: optional(text, {
    group: "Cluster",
    help: "The secret of the access key. Prefer a file.",
    absent: "none",
    secret: true,
  }),
};
