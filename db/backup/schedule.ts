// Scheduled backups of a server: creates a backup when the newest one is older than the interval, and deletes the oldest. Each runs in a
// separate process (see snapshot.ts for the reason). A failure is logged and retried; the server keeps running.
import { join, resolve } from "node:path";
import type { Clock, Timer } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import { log } from "#base/log.ts";
import { findNewestBackup, removeOld } from "./backup-folder.ts";
import { ManualBackups, runCommand } from "./by-hand.ts";

const RETRY_MS = 600_000;
/** Timers of the platform are limited to 24 days. */
const MAX_WAIT_MS = 86_400_000;

export type ScheduleOptions = {
  clock: Clock;
  data_dir: string;
  /** The backup folder. */
  folder: string;
  /** Milliseconds; undefined disables scheduled backups. */
  interval: number | undefined;
  keep: number;
  rateMb: number;
  /** Creates a backup; defaults to `slipway backup`. Rejects with the reason. Tests replace it. */
  make?(signal: AbortSignal): Promise<void>;
};

export class ScheduledBackups {
  readonly #options: ScheduleOptions;
  readonly #stopping = new AbortController();
  #timer: Timer | undefined;
  #running: Promise<void> | undefined;
  /** When the last backup finished, in milliseconds since 1970; 0: none since the start. */
  last = 0;
  failures = 0;

  constructor(options: ScheduleOptions) {
    this.#options = options;
  }

  /** Starts the schedule. A backup that became due while no server was running is created immediately. */
  async start(): Promise<void> {
    const { interval } = this.#options;
    if (interval !== undefined) this.#wait(await this.#msUntilNext(interval));
  }

  /** Returns the time until the next backup; 0 if the folder is unreadable, because the backup then reports the error and is retried. */
  async #msUntilNext(interval: number): Promise<number> {
    const now = this.#options.clock.now();
    const newest = await findNewestBackup(this.#options.folder, now).catch(() => undefined);
    return newest === undefined ? 0 : Math.max(0, newest + interval - now);
  }

  /** Aborts a running backup. A partial backup has no final name, and a later one deletes it. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error("the server is stopping"));
    this.#timer?.cancel();
    await this.#running;
  }

  #wait(ms: number): void {
    if (this.#stopping.signal.aborted) return;
    const next = Math.min(ms, MAX_WAIT_MS);
    this.#timer = this.#options.clock.after(next, () => {
      if (next < ms) this.#wait(ms - next);
      else this.#running = this.#runScheduled();
    });
  }

  async #runScheduled(): Promise<void> {
    const {
      interval = RETRY_MS,
      clock,
      folder,
      keep,
      make = (signal) => runBackup(this.#options, signal),
    } = this.#options;
    try {
      await make(this.#stopping.signal);
      this.last = clock.now();
      // A failed deletion does not start the next backup earlier.
      await removeOld(folder, keep, clock.now()).catch((error: unknown) => {
        log("backup").error("old backups could not be removed", { error });
      });
      this.#wait(interval);
    } catch (error) {
      if (this.#stopping.signal.aborted) return;
      this.failures += 1;
      log("backup").error("a backup has failed; it is tried again", { error });
      this.#wait(Math.min(interval, RETRY_MS));
    }
  }
}

/** Returns the default folder of backups. */
export const toBackupFolder = (config: Config): string => config.backup_dir ?? join(config.data_dir, "backups");

/** Returns scheduled backups as configured. */
export const createScheduledBackups = (config: Config, clock: Clock): ScheduledBackups =>
  new ScheduledBackups({
    clock,
    data_dir: config.data_dir,
    interval: config.backup_interval,
    folder: toBackupFolder(config),
    keep: config.backup_keep,
    rateMb: config.backup_rate_mb,
  });

/** Returns the backups that people request, with the same folder. */
export const createManualBackups = (config: Config, clock: Clock): ManualBackups =>
  new ManualBackups({
    clock,
    data_dir: config.data_dir,
    interval: config.backup_interval,
    folder: toBackupFolder(config),
    keep: config.backup_keep,
    rateMb: config.backup_rate_mb,
  });

const runBackup = ({ data_dir, folder, rateMb }: ScheduleOptions, signal: AbortSignal): Promise<void> =>
  runCommand(["backup", resolve(folder), `--data-dir=${resolve(data_dir)}`, `--backup-rate-mb=${rateMb}`], signal);
