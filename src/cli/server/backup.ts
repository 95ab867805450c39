// `slipway backup [FOLDER|FILE.tar] [--json] [settings]`: backs up the data directory, whether or not a server is running. It runs in a
// separate process (db/backup/snapshot.ts says why); the server starts this command for its own backups.

import { existsSync } from "node:fs";
import { constants, setPriority } from "node:os";
import { dirname, join } from "node:path";
import { keepProcessAlive } from "#base/clock.ts";
import { loadConfig } from "#base/config.ts";
import { formatSize } from "#base/format-size.ts";
import { makeBackup } from "#db/backup/backup.ts";
import { removeLeftovers } from "#db/backup/backup-folder.ts";
import { BackupError, DATABASE } from "#db/backup/manifest.ts";
import { toBackupFolder } from "#db/backup/schedule.ts";
import { EXIT, type RunVerb, takePath, takeSwitch, type VerbInput } from "../verb.ts";
import { changeToOwner } from "./ownership.ts";
import { TerminalProgress } from "./progress.ts";

export const run: RunVerb = async (input) => {
  const { isGiven: json, rest } = takeSwitch(input.argv, "--json");
  const { path, rest: argv } = takePath(rest);
  const { config } = loadConfig({ ...input, argv });
  return explainErrors("backup", input, config.data_dir, async () => {
    const { data_dir } = config;
    const target = path ?? toBackupFolder(config);
    // Checked first, so that a mistyped folder stays empty and usable for a restore.
    if (!existsSync(join(data_dir, DATABASE))) throw new BackupError(`there is no database in ${data_dir}`);
    // The priority is not lower yet: the first copy locks the server's write-ahead log, and a busy machine would keep it locked longer.
    lowerPriority(constants.priority.PRIORITY_BELOW_NORMAL);
    const folder = target.endsWith(".tar") ? dirname(target) : target;
    await removeLeftovers([folder, join(data_dir, "backups")], input.clock.now());
    using progress = new TerminalProgress(input, `backing up ${data_dir}`);
    const created = await makeBackup({
      data_dir,
      target,
      clock: input.clock,
      signal: input.signal,
      rateMb: config.backup_rate_mb,
      onProgress: progress.report,
      copied: () => lowerPriority(constants.priority.PRIORITY_LOW),
    });
    progress[Symbol.dispose]();
    const { created_at, files } = created.manifest;
    const facts = { path: created.path, bytes: created.bytes, files: files.length, created_at };
    input.print(json ? JSON.stringify(facts) : `${created.path}  ${formatSize(created.bytes)}`);
  });
};

/** Prints an error that the operator can fix as a sentence, with the data directory if relevant. Returns the exit code. */
export const explainErrors = async (
  verb: string,
  { printError }: VerbInput,
  data_dir: string | undefined,
  work: () => Promise<void>,
): Promise<number> => {
  const keepAlive = keepProcessAlive();
  try {
    await work();
    return EXIT.ok;
  } catch (error) {
    const { code = "", message } = error as { code?: string; message: string };
    const isExplained =
      error instanceof BackupError || /^(EACCES|EPERM|EROFS|ENOENT|ENOSPC|EDQUOT|ENOTDIR|EEXIST)$/.test(code);
    if (!isExplained) throw error;
    printError(`slipway ${verb}: ${message}${data_dir === undefined ? "" : ` (data directory ${data_dir})`}\n`);
    return EXIT.failed;
  } finally {
    if (data_dir !== undefined) changeToOwner(data_dir, verb === "restore");
    keepAlive.cancel();
  }
};

/** Lowers this process's priority in favor of the server. */
const lowerPriority = (priority: number): void => {
  try {
    setPriority(0, priority);
  } catch {
    // Not supported everywhere, and not essential.
  }
};
