// `slipway backup [FOLDER|FILE.tar] [--json] [settings]`: a backup of the data directory, while a server runs on it or not. It runs in
// a process of its own (db/backup/snapshot.ts says why); the server starts this verb for the backups of its own.
import { existsSync } from "node:fs";
import { constants, setPriority } from "node:os";
import { dirname, join } from "node:path";
import { holdProcess } from "#base/clock.ts";
import { loadConfig } from "#base/config.ts";
import { makeBackup } from "#db/backup/backup.ts";
import { removeLeftovers } from "#db/backup/kept.ts";
import { BackupError, DATABASE } from "#db/backup/manifest.ts";
import { backupFolder } from "#db/backup/schedule.ts";
import { EXIT, type RunVerb, takePath, takeSwitch, type VerbInput } from "../verb.ts";
import { Far } from "./far.ts";
import { giveToOwner } from "./ownership.ts";

export const run: RunVerb = async (input) => {
  const { given: json, rest } = takeSwitch(input.argv, "--json");
  const { path, rest: argv } = takePath(rest);
  const { config } = loadConfig({ ...input, argv });
  return forPeople("backup", input, config.data_dir, async () => {
    const { data_dir } = config;
    const target = path ?? backupFolder(config);
    // Before anything is made, so that a mistyped folder stays one that a restore takes.
    if (!existsSync(join(data_dir, DATABASE))) throw new BackupError(`there is no database in ${data_dir}`);
    // Not lower than this while the log of the server is held, or on a busy machine it would be held for long.
    yieldToTheServer(constants.priority.PRIORITY_BELOW_NORMAL);
    const folder = target.endsWith(".tar") ? dirname(target) : target;
    await removeLeftovers([folder, join(data_dir, "backups")], input.clock.now());
    using far = new Far(input, `backing up ${data_dir}`);
    const made = await makeBackup({
      data_dir,
      target,
      clock: input.clock,
      signal: input.signal,
      rateMb: config.backup_rate_mb,
      onProgress: far.report,
      copied: () => yieldToTheServer(constants.priority.PRIORITY_LOW),
    });
    far[Symbol.dispose]();
    const { created_at, files } = made.manifest;
    const facts = { path: made.path, bytes: made.bytes, files: files.length, created_at };
    input.print(json ? JSON.stringify(facts) : `${made.path}  ${(made.bytes / 1024 / 1024).toFixed(1)} MiB`);
  });
};

/** Prints an error that the operator can fix in a sentence, with the data directory if relevant; returns the exit code. */
export const forPeople = async (
  verb: string,
  { printError }: VerbInput,
  data_dir: string | undefined,
  work: () => Promise<void>,
): Promise<number> => {
  const hold = holdProcess();
  try {
    await work();
    return EXIT.ok;
  } catch (error) {
    const { code = "", message } = error as { code?: string; message: string };
    const known =
      error instanceof BackupError || /^(EACCES|EPERM|EROFS|ENOENT|ENOSPC|EDQUOT|ENOTDIR|EEXIST)$/.test(code);
    if (!known) throw error;
    printError(`slipway ${verb}: ${message}${data_dir === undefined ? "" : ` (data directory ${data_dir})`}\n`);
    return EXIT.failed;
  } finally {
    if (data_dir !== undefined) giveToOwner(data_dir, verb === "restore");
    hold.cancel();
  }
};

/** The server's own work goes first where both want the processor. */
const yieldToTheServer = (priority: number): void => {
  try {
    setPriority(0, priority);
  } catch {
    // Not everywhere, and not needed.
  }
};
