// Backups that people request while the server runs: creates and verifies backups, one at a time, each in a separate process (see
// snapshot.ts for the reason). Determines the progress from the files that the process writes, and notifies listeners of it.
import { existsSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { type Clock, type Timer, toRfc3339 } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { getOwnCommand } from "#base/program.ts";
import type { Backup, Backups, BackupWork } from "#schema/administration/backup.ts";
import { listBackups } from "./backup-folder.ts";
import { BackupError, DATABASE, parseBackupTime, readManifest } from "./manifest.ts";

export type ManualBackupOptions = {
  readonly clock: Clock;
  readonly data_dir: string;
  readonly folder: string;
  readonly interval: number | undefined;
  readonly keep: number;
  readonly rateMb: number;
};

/** Another operation is already running. */
export class BusyError extends Error {
  override readonly name = "BusyError";
}

const PROGRESS_INTERVAL_MS = 500;
/** Names of unfinished backups and checks. */
const UNFINISHED = /^\.(slipway-.*\.part|check-.*)$/;

type Verification = { readonly at: number; readonly problem: string };

export class ManualBackups {
  readonly #options: ManualBackupOptions;
  readonly #stopping = new AbortController();
  readonly #verifications = new Map<string, Verification>();
  readonly #listeners = new Set<() => void>();
  #work: BackupWork | undefined;
  #running: Promise<void> = Promise.resolve();
  #failure = "";
  #timer: Timer | undefined;

  constructor(options: ManualBackupOptions) {
    this.#options = options;
  }

  /** Subscribes to progress. Returns a function that unsubscribes. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Returns all backups and the running operation. */
  async list(): Promise<Backups> {
    const { folder, interval, keep, clock } = this.#options;
    const names = (await listBackups(folder, clock.now())).reverse();
    return {
      folder: resolve(folder),
      interval_ms: interval ?? null,
      keep,
      work: this.#work ?? null,
      failure: this.#failure,
      backups: names.map((name) => this.#presentBackup(name)),
    };
  }

  /** Begins a backup. Throws BusyError. */
  make(): void {
    const { data_dir, folder, rateMb } = this.#options;
    const settings = [`--data-dir=${resolve(data_dir)}`, `--backup-rate-mb=${rateMb}`];
    this.#begin({ kind: "make", name: "" }, async () => {
      const database = await stat(join(data_dir, DATABASE));
      this.#updateProgress({ total_bytes: database.size });
      await runCommand(["backup", resolve(folder), ...settings], this.#stopping.signal);
    });
  }

  /** Begins to verify a backup by reading all of it. Returns false when it does not exist. Throws BusyError. */
  async check(name: string): Promise<boolean> {
    const { folder, clock } = this.#options;
    if (!(await listBackups(folder, clock.now())).includes(name)) return false;
    this.#begin({ kind: "check", name }, async () => {
      this.#updateProgress({ total_bytes: this.#presentBackup(name).bytes });
      try {
        await runCommand(["restore", join(resolve(folder), name), "--check"], this.#stopping.signal);
        this.#verifications.set(name, { at: clock.now(), problem: "" });
      } catch (error) {
        if (!this.#stopping.signal.aborted)
          this.#verifications.set(name, { at: clock.now(), problem: formatError(error) });
        throw error;
      }
    });
    return true;
  }

  /** Aborts the running operation. A partial backup has no final name, and a later one deletes it. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error("the server is stopping"));
    await this.#running;
  }

  #begin(work: Pick<BackupWork, "kind" | "name">, run: () => Promise<void>): void {
    if (this.#work) throw new BusyError(`a backup is being ${this.#work.kind === "make" ? "made" : "checked"} already`);
    const { clock, folder } = this.#options;
    this.#failure = "";
    this.#work = { ...work, started_at: toRfc3339(clock.now()), bytes: 0, total_bytes: 0 };
    this.#timer = clock.every(
      PROGRESS_INTERVAL_MS,
      () => void measureFolder(folder).then((bytes) => this.#updateProgress({ bytes })),
    );
    this.#notifyListeners();
    this.#running = this.#runWork(run);
  }

  async #runWork(run: () => Promise<void>): Promise<void> {
    try {
      await run();
    } catch (error) {
      if (!this.#stopping.signal.aborted) {
        this.#failure = formatError(error);
        log("backup").error("a requested backup has failed", { error });
      }
    } finally {
      this.#timer?.cancel();
      this.#work = undefined;
      this.#notifyListeners();
    }
  }

  #updateProgress(progress: Partial<Pick<BackupWork, "bytes" | "total_bytes">>): void {
    if (!this.#work) return;
    this.#work = { ...this.#work, ...progress };
    this.#notifyListeners();
  }

  #notifyListeners(): void {
    for (const listener of this.#listeners) listener();
  }

  #presentBackup(name: string): Backup {
    const verification = this.#verifications.get(name);
    const base = { name, checked_at: verification ? toRfc3339(verification.at) : null };
    try {
      const { created_at, files, version } = readManifest(join(this.#options.folder, name));
      const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
      return { ...base, created_at, bytes, files: files.length, version, problem: verification?.problem ?? "" };
    } catch (error) {
      if (!(error instanceof BackupError)) throw error;
      const created_at = toRfc3339(parseBackupTime(name));
      return { ...base, created_at, bytes: 0, files: 0, version: "", problem: error.message };
    }
  }
}

const formatError = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Returns the bytes of unfinished files in the folder, ignoring files that are deleted concurrently. */
const measureFolder = async (folder: string): Promise<number> => {
  if (!existsSync(folder)) return 0;
  let sum = 0;
  for (const name of (await readdir(folder)).filter((one) => UNFINISHED.test(one))) {
    const files = await readdir(join(folder, name), { recursive: true }).catch(() => []);
    for (const file of files) {
      const found = await stat(join(folder, name, file)).catch(() => undefined);
      if (found?.isFile()) sum += found.size;
    }
  }
  return sum;
};

/** Runs a command of this program. Rejects with its output when it fails. */
export const runCommand = async (argv: readonly string[], signal: AbortSignal): Promise<void> => {
  const child = Bun.spawn([...getOwnCommand(), ...argv], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
    env: {},
  });
  const stop = (): void => child.kill("SIGTERM");
  signal.addEventListener("abort", stop, { once: true });
  try {
    const output = await new Response(child.stderr).text();
    if ((await child.exited) !== 0)
      throw new Error(output.trim() || `it ended with ${child.exitCode ?? child.signalCode}`);
  } finally {
    signal.removeEventListener("abort", stop);
  }
};
