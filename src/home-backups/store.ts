// The store of home backups: writes, reads, verifies and deletes them, with either engine. A backup exists when its manifest exists, and is
// verified against the manifest each time it is read.
import type { Clock } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import type { Encryption } from "#base/encryption.ts";
import { failpoint } from "#base/failpoint.ts";
import { isUuid } from "#base/ids.ts";
import { parseRecoveryKey } from "#base/recovery-key.ts";
import { pause } from "#base/retry.ts";
import type { HomeBackupEngine } from "#schema/workspaces/home-backup.ts";
import { Archives } from "./archive.ts";
import { HomeBackupError } from "./error.ts";
import { deriveKeys, type Keys } from "./keys.ts";
import {
  type HomeDetails,
  listIds,
  listWorkspaces,
  type Manifest,
  readManifest,
  removeManifest,
  writeManifest,
} from "./manifest.ts";
import { checkRestic, findRestic, Restic } from "./restic.ts";
import { type BackupStorage, openBackupStorage } from "./storage.ts";

export type { Manifest };

const RESTIC_MISSING = "restic is not installed. Install it, or set its path in home_backup_restic.";

/** Returns the recovery key of a server whose settings specify none. */
export const deriveRecoveryKey = (encryption: Encryption): string => encryption.deriveUuid("home backups");

type StoreDeps = {
  readonly config: Config;
  readonly clock: Clock;
  /** The PATH to search for restic. */
  readonly path: string | undefined;
  /** The recovery key if the settings specify none. */
  readonly recovery_key: string;
};

type NewBackup = HomeDetails & {
  readonly id: string;
  readonly created_at: number;
  readonly stream: AsyncIterable<Uint8Array>;
};

export class HomeBackupStore {
  readonly storage: BackupStorage;
  readonly #clock: Clock;
  readonly #keys: Promise<Keys>;
  readonly #engine: Config["home_backup_engine"];
  readonly #restic: string | undefined;
  readonly #path: string;
  readonly #bytesPerMs: number;

  private constructor(storage: BackupStorage, recovery_key: string, { config, clock, path = "" }: StoreDeps) {
    this.storage = storage;
    this.#clock = clock;
    this.#keys = deriveKeys(recovery_key);
    this.#engine = config.home_backup_engine;
    this.#restic = config.home_backup_engine === "archive" ? undefined : findRestic(config.home_backup_restic, path);
    this.#path = path;
    this.#bytesPerMs = (config.backup_rate_mb * 1024 * 1024) / 1000;
  }

  /** Returns undefined if no location is configured. */
  static open(deps: StoreDeps): HomeBackupStore | undefined {
    const storage = openBackupStorage(deps.config, deps.clock);
    const { home_backup_recovery_key: configuredKey } = deps.config;
    return (
      storage &&
      new HomeBackupStore(storage, (configuredKey && parseRecoveryKey(configuredKey)) ?? deps.recovery_key, deps)
    );
  }

  /** Returns the engine of the next backup. Throws HomeBackupError if the configured one is not available. */
  async chooseEngine(): Promise<HomeBackupEngine> {
    if (this.#engine === "archive") return "archive";
    if (this.#restic !== undefined) {
      await checkRestic(this.#restic);
      return "restic";
    }
    if (this.#engine === "restic") throw new HomeBackupError(RESTIC_MISSING);
    return "archive";
  }

  /** Stores a backup, based on the previous backup `base`. The backup is complete when this resolves. */
  async write({ stream, ...details }: NewBackup, base: string | undefined, signal: AbortSignal): Promise<Manifest> {
    const keys = await this.#keys;
    const engine = await this.chooseEngine();
    const { workspace_id, id } = details;
    const measured = this.#measure(stream, signal);
    const stored =
      engine === "restic"
        ? await (await this.#openRestic()).write(workspace_id, id, measured.stream, signal)
        : await new Archives(this.storage, keys).write(
            workspace_id,
            measured.stream,
            await this.#loadChunks(workspace_id, base),
          );
    failpoint("home_backup_stored");
    const manifest: Manifest = Object.assign({}, details, stored, {
      engine,
      bytes: measured.bytes(),
      sha256: measured.sha256(),
    });
    signal.throwIfAborted();
    await writeManifest(this.storage, keys, manifest);
    failpoint("home_backup_listed");
    return manifest;
  }

  /** Returns the manifest of a backup. Throws HomeBackupError if it is missing. */
  async find(workspace_id: string, id: string): Promise<Manifest> {
    const manifest = await readManifest(this.storage, await this.#keys, workspace_id, id);
    if (manifest) return manifest;
    throw new HomeBackupError(`The backup is missing from ${this.storage.url}.`, { isDamage: true });
  }

  /** Returns the tar archive of a backup. Throws HomeBackupError at its end if it does not match the manifest. */
  async *read(manifest: Manifest, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const { workspace_id, bytes, sha256, chunks, restic_snapshot } = manifest;
    const stream =
      restic_snapshot !== undefined
        ? (await this.#openRestic()).read(workspace_id, restic_snapshot, signal)
        : new Archives(this.storage, await this.#keys).read(workspace_id, chunks ?? []);
    const measured = this.#measure(stream, signal);
    yield* measured.stream;
    if (measured.bytes() !== bytes || measured.sha256() !== sha256) {
      throw new HomeBackupError("The stored files don't match the backup's checksum.", {
        isDamage: true,
      });
    }
  }

  /** Reads a backup completely. Throws HomeBackupError. */
  async verify(workspace_id: string, id: string, signal: AbortSignal): Promise<void> {
    for await (const _ of this.read(await this.find(workspace_id, id), signal)) signal.throwIfAborted();
  }

  /** Deletes backups of a workspace, and data that no other backup uses. Can be repeated. */
  async remove(workspace_id: string, ids: readonly string[], signal: AbortSignal): Promise<void> {
    const keys = await this.#keys;
    for (const id of ids) await removeManifest(this.storage, workspace_id, id);
    failpoint("home_backup_pruning");
    const remaining = await listIds(this.storage, workspace_id);
    const chunks = new Set<string>();
    const snapshots = new Set<string>();
    for (const id of remaining) {
      signal.throwIfAborted();
      const manifest = await readManifest(this.storage, keys, workspace_id, id);
      for (const chunk of manifest?.chunks ?? []) chunks.add(chunk);
      if (manifest?.restic_snapshot) snapshots.add(manifest.restic_snapshot);
    }
    await new Archives(this.storage, keys).prune(workspace_id, chunks, this.#clock.now());
    // If restic is not installed, its data is kept until it is installed again. A folder without backups is deleted without restic.
    if (this.#restic !== undefined || snapshots.size === 0) {
      await this.#makeRestic(this.#restic ?? "", keys).prune(workspace_id, snapshots, signal);
    }
  }

  /** Returns all backups, or those of one workspace, newest first. Needs only the location and the key, so it works on any machine. */
  async list(workspace?: string): Promise<Manifest[]> {
    const keys = await this.#keys;
    const manifests: Manifest[] = [];
    for (const workspace_id of workspace !== undefined && isUuid(workspace)
      ? [workspace]
      : await listWorkspaces(this.storage)) {
      for (const id of await listIds(this.storage, workspace_id)) {
        const manifest = await readManifest(this.storage, keys, workspace_id, id);
        if (manifest) manifests.push(manifest);
      }
    }
    return manifests.sort((a, b) => b.created_at - a.created_at);
  }

  async #loadChunks(workspace_id: string, base: string | undefined): Promise<readonly string[]> {
    const manifest =
      base === undefined ? undefined : await readManifest(this.storage, await this.#keys, workspace_id, base);
    return manifest?.chunks ?? [];
  }

  async #openRestic(): Promise<Restic> {
    if (this.#restic === undefined) throw new HomeBackupError(`The backup was created by restic. ${RESTIC_MISSING}`);
    return this.#makeRestic(this.#restic, await this.#keys);
  }

  #makeRestic(program: string, { password }: Keys): Restic {
    return new Restic(program, this.storage, password, this.#path);
  }

  /** Returns the same stream, limited to the configured rate, with its size and digest so far. */
  #measure(stream: AsyncIterable<Uint8Array>, signal: AbortSignal) {
    const totals = { hasher: new Bun.CryptoHasher("sha256"), bytes: 0 };
    return {
      stream: this.#limitAndCount(stream, totals, signal),
      bytes: () => totals.bytes,
      sha256: () => totals.hasher.digest("hex"),
    };
  }

  async *#limitAndCount(
    stream: AsyncIterable<Uint8Array>,
    totals: { readonly hasher: Bun.CryptoHasher; bytes: number },
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    const startedAt = this.#clock.monotonic();
    for await (const piece of stream) {
      signal.throwIfAborted();
      totals.hasher.update(piece);
      totals.bytes += piece.length;
      const aheadMs =
        this.#bytesPerMs === 0 ? 0 : totals.bytes / this.#bytesPerMs - (this.#clock.monotonic() - startedAt);
      if (aheadMs > 1) await pause(this.#clock, aheadMs, signal);
      yield piece;
    }
  }
}
