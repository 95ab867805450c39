// The backups a server makes on its own: one each interval, counted from the newest that is there, and the oldest of them removed.
// Each runs in a process of its own (snapshot.ts says why). One that fails is logged and tried again; the server continues.
import { join, resolve } from "node:path";
import type { Clock, Timer } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import { log } from "#base/log.ts";
import { runVerb } from "./by-hand.ts";
import { newestBackup, removeOld } from "./kept.ts";

const RETRY_MS = 600_000;
/** A timer of the platform cannot wait longer than 24 days. */
const MAX_WAIT_MS = 86_400_000;

export type ScheduleOptions = {
  clock: Clock;
  data_dir: string;
  /** Where the backups go. */
  folder: string;
  /** Milliseconds; undefined: none is made. */
  interval: number | undefined;
  keep: number;
  rateMb: number;
  /** Makes one; default: the verb `backup` of this program. Rejects with the reason. Tests pass their own. */
  make?(signal: AbortSignal): Promise<void>;
};

export class ScheduledBackups {
  readonly #options: ScheduleOptions;
  readonly #stopping = new AbortController();
  #timer: Timer | undefined;
  #running: Promise<void> | undefined;
  /** When the last one was done, milliseconds since 1970; 0: none since the start. */
  last = 0;
  failures = 0;

  constructor(options: ScheduleOptions) {
    this.#options = options;
  }

  /** Begins to count. A backup that fell due while no server ran is made at once. */
  async start(): Promise<void> {
    const { interval } = this.#options;
    if (interval !== undefined) this.#wait(await this.#due(interval));
  }

  /** A folder that cannot be looked at stops no server: the backup says so, and is tried again. */
  async #due(interval: number): Promise<number> {
    const now = this.#options.clock.now();
    const newest = await newestBackup(this.#options.folder, now).catch(() => undefined);
    return newest === undefined ? 0 : Math.max(0, newest + interval - now);
  }

  /** Ends what is under way; half a backup has no name, and is removed by a later one. */
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
      else this.#running = this.#run();
    });
  }

  async #run(): Promise<void> {
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
      // One that cannot be removed is no reason to make the next one sooner.
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

/** Where backups go when nobody says otherwise. */
export const backupFolder = (config: Config): string => config.backup_dir ?? join(config.data_dir, "backups");

/** As the settings say. */
export const scheduledBackups = (config: Config, clock: Clock): ScheduledBackups =>
  new ScheduledBackups({
    clock,
    data_dir: config.data_dir,
    interval: config.backup_interval,
    folder: backupFolder(config),
    keep: config.backup_keep,
    rateMb: config.backup_rate_mb,
  });

const runBackup = ({ data_dir, folder, rateMb }: ScheduleOptions, signal: AbortSignal): Promise<void> =>
  runVerb(["backup", resolve(folder), `--data-dir=${resolve(data_dir)}`, `--backup-rate-mb=${rateMb}`], signal);
