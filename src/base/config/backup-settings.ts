// Settings of backups: of the verb `backup`, and of those the server makes on its own.
import { duration, path, whole } from "./kinds.ts";
import { optional, setting } from "./setting.ts";

export const BACKUP_SETTINGS = {
  backup_interval: optional(duration(60_000, 366 * 86_400_000), {
    group: "Backups",
    help: "How often the server creates a backup automatically, such as 1d.",
    absent: "it makes none",
  }),
  backup_dir: optional(path, {
    group: "Backups",
    help: "The folder for these backups, and for `slipway backup` when none is named. Best on another disk: who loses the data directory would lose those inside of it, too.",
    absent: "the folder backups in the data directory",
  }),
  backup_keep: setting(whole(1, 10_000), 7, {
    group: "Backups",
    help: "How many of its own backups the server keeps; older ones are removed after the next was made.",
  }),
  backup_rate_mb: setting(whole(0, 100_000), 64, {
    group: "Backups",
    help: "How fast backups are written, in MiB a second, so that the server's own writes do not wait for the disk. 0: as fast as it goes.",
  }),
};
