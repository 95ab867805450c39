// Settings of home backups: copies of the files of workspaces in a folder or a bucket, away from the machine that holds them.
import { baseUrl, choice, duration, matching, path, text, whole } from "./kinds.ts";
import { optional, setting } from "./setting.ts";
import { bucketName, objectPrefix } from "./storage-settings.ts";

const group = "Home backups";

export const HOME_BACKUP_SETTINGS = {
  home_backup_interval: optional(duration(60_000, 366 * 86_400_000), {
    group,
    help: "How often the files of each workspace are backed up, such as 1d. Needs home_backup_dir or home_backup_s3_bucket.",
    absent: "only on request",
  }),
  home_backup_dir: optional(path, {
    group,
    help: "The folder for backups of workspaces' files. Best on another disk. Not for clusters, whose nodes have disks of their own.",
    absent: "none",
  }),
  home_backup_s3_bucket: optional(bucketName, {
    group,
    help: "The bucket of S3-compatible storage for backups of workspaces' files. Needs home_backup_s3_access_key and home_backup_s3_secret_key.",
    absent: "none",
  }),
  home_backup_s3_endpoint: optional(baseUrl, {
    group,
    help: "Where the storage answers, such as https://storage.example.com. The bucket is named in the path.",
    absent: "Amazon S3 in home_backup_s3_region",
  }),
  home_backup_s3_region: setting(
    matching(/^[a-z0-9-]{1,40}$/, "a region such as eu-central-1", "REGION"),
    "us-east-1",
    {
      group,
      help: "The region of the bucket.",
    },
  ),
  home_backup_s3_prefix: setting(objectPrefix, "slipway-homes/", {
    group,
    help: "What the names of objects begin with.",
  }),
  home_backup_s3_access_key: optional(text, {
    group,
    help: "The id of the key that may list, write, read and remove objects of the bucket.",
    absent: "none",
    secret: true,
  }),
  home_backup_s3_secret_key: optional(text, {
    group,
    help: "The secret of that key. Best in a file of its own.",
    absent: "none",
    secret: true,
  }),
  home_backup_recovery_key: optional(text, {
    group,
    help: "The recovery key that home backups are encrypted with: one that `slipway home-backups key` has printed. For a server, or a machine without one, that continues with the backups of another.",
    absent: "derived from the encryption key",
    secret: true,
  }),
  home_backup_keep_daily: setting(whole(1, 1_000), 7, {
    group,
    help: "For how many days the newest backup of each day is kept. The newest backup of a workspace is always kept.",
  }),
  home_backup_keep_weekly: setting(whole(0, 1_000), 4, {
    group,
    help: "For how many weeks the newest backup of each week is kept. Backups of a workspace that was deleted permanently are kept as long, and at least a day.",
  }),
  home_backup_engine: setting(choice("auto", "restic", "archive"), "auto", {
    group,
    help: "What makes home backups. restic: the program restic, which must be there. archive: encrypted incremental archives of Slipway's own. auto: restic where it is installed.",
  }),
  home_backup_restic: optional(path, {
    group,
    help: "The program restic, version 0.14 or newer.",
    absent: "restic on the PATH",
  }),
};
