// Settings of home backups: copies of workspace files in a folder or bucket, away from the machine that stores them.
import { baseUrl, choice, duration, integer, matching, path, text, YEAR_MS } from "./kinds.ts";
import { optional, setting } from "./setting.ts";
import { bucketName, objectPrefix } from "./storage-settings.ts";

const group = "Home backups";

export const HOME_BACKUP_SETTINGS = {
  home_backup_interval: optional(duration(60_000, YEAR_MS), {
    group,
    help: "How often the files of each workspace are backed up, such as 1d. Needs home_backup_dir or home_backup_s3_bucket.",
    absent: "only on request",
  }),
  home_backup_dir: optional(path, {
    group,
    help: "The folder for home backups. Prefer another disk. Not available in a cluster, because nodes don't share disks.",
    absent: "none",
  }),
  home_backup_s3_bucket: optional(bucketName, {
    group,
    help: "The S3-compatible bucket for home backups. Needs home_backup_s3_access_key and home_backup_s3_secret_key.",
    absent: "none",
  }),
  home_backup_s3_endpoint: optional(baseUrl, {
    group,
    help: "The URL of the storage, such as https://storage.example.com. The bucket is added to the path.",
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
    help: "The prefix of object names.",
  }),
  home_backup_s3_access_key: optional(text, {
    group,
    help: "The ID of an access key that can list, write, read and delete objects of the bucket.",
    absent: "none",
    secret: true,
  }),
  home_backup_s3_secret_key: optional(text, {
    group,
    help: "The secret of the access key. Prefer a file.",
    absent: "none",
    secret: true,
  }),
  home_backup_recovery_key: optional(text, {
    group,
    help: "The recovery key that encrypts home backups, as printed by `slipway home-backups key`. Set it to use the backups of another server.",
    absent: "derived from the encryption key",
    secret: true,
  }),
  home_backup_keep_daily: setting(integer(1, 1_000), 7, {
    group,
    help: "How many days to keep one backup a day. The newest backup of a workspace is always kept.",
  }),
  home_backup_keep_weekly: setting(integer(0, 1_000), 4, {
    group,
    help: "How many weeks to keep one backup a week. Backups of a permanently deleted workspace are kept equally long, at least for a day.",
  }),
  home_backup_engine: setting(choice("auto", "restic", "archive"), "auto", {
    group,
    help: "How home backups are created. restic: with the program restic, which must be installed. archive: as Slipway's own encrypted, incremental archives. auto: with restic if it is installed, otherwise as archives.",
  }),
  home_backup_restic: optional(path, {
    group,
    help: "The program restic, version 0.14 or newer.",
    absent: "restic on the PATH",
  }),
};
