// Storage of home backups: a folder, or an S3-compatible bucket. Objects are written completely or not at all.
import type { Dirent } from "node:fs";
import { mkdir, open, readdir, readFile, rename, rm, rmdir, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { Clock } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import { uuid } from "#base/ids.ts";
import { Bucket } from "#base/network/bucket.ts";
import { BucketError } from "#base/network/bucket-error.ts";
import { HomeBackupError } from "./error.ts";

type StoredObject = { readonly name: string; readonly modified_at: number };

/** Each method throws HomeBackupError, with messages for operators. */
export interface BackupStorage {
  /** Identifies the location, also after the settings have changed. On Amazon for example `s3://bucket/slipway-homes/`. */
  readonly url: string;
  put(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  /** Returns the object; undefined if it is missing. Throws if it has more than `max` bytes. */
  get(name: string, max: number): Promise<Uint8Array | undefined>;
  /** Lists all objects in a folder. The folder's name ends with a slash. */
  list(folder: string): AsyncIterable<StoredObject>;
  /** Removes an object. Does nothing if it is missing. */
  remove(name: string): Promise<void>;
  /** Writes, reads and deletes a test object. */
  check(): Promise<void>;
  /** The name of a folder of this location for restic, and the environment variables with the credentials. */
  readonly restic: { repository(folder: string): string; readonly env: Readonly<Record<string, string>> };
}

type Settings = Pick<
  Config,
  | "home_backup_dir"
  | "home_backup_s3_bucket"
  | "home_backup_s3_endpoint"
  | "home_backup_s3_region"
  | "home_backup_s3_prefix"
  | "home_backup_s3_access_key"
  | "home_backup_s3_secret_key"
>;

/** Returns the configured location; undefined if the settings name no location. */
export const openBackupStorage = (settings: Settings, clock: Clock): BackupStorage | undefined => {
  const { home_backup_dir, home_backup_s3_bucket: bucket } = settings;
  if (home_backup_dir !== undefined) return new FolderStorage(resolve(home_backup_dir));
  const { home_backup_s3_access_key: access_key, home_backup_s3_secret_key: secret_key } = settings;
  if (bucket === undefined || access_key === undefined || secret_key === undefined) return undefined;
  const { home_backup_s3_endpoint, home_backup_s3_region: region, home_backup_s3_prefix: prefix } = settings;
  return new BucketStorage(
    { endpoint: home_backup_s3_endpoint?.origin, region, bucket, prefix, access_key, secret_key },
    clock,
  );
};

class FolderStorage implements BackupStorage {
  readonly url: string;
  readonly restic: BackupStorage["restic"];
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
    this.url = folder;
    this.restic = { repository: (name) => join(folder, name), env: {} };
  }

  put(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    return this.#withErrors(async () => {
      const path = join(this.#folder, name);
      const part = join(dirname(path), `.${uuid()}.part`);
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      try {
        await using file = await open(part, "wx", 0o600);
        await file.writeFile(bytes);
        await file.sync();
        await rename(part, path);
        await flush(dirname(path));
      } catch (error) {
        await rm(part, { force: true });
        throw error;
      }
    });
  }

  get(name: string, max: number): Promise<Uint8Array | undefined> {
    return this.#withErrors(async () => {
      const path = join(this.#folder, name);
      const file = await stat(path).catch(toUndefinedIfMissing);
      if (!file) return undefined;
      if (file.size > max)
        throw new HomeBackupError(`${path} is larger than any file of a backup.`, { isDamage: true });
      return readFile(path).catch(toUndefinedIfMissing);
    });
  }

  async *list(folder: string): AsyncGenerator<StoredObject> {
    const entries: Dirent[] = await this.#withErrors(
      async () =>
        (await readdir(join(this.#folder, folder), { withFileTypes: true }).catch(toUndefinedIfMissing)) ?? [],
    );
    for (const entry of entries) {
      const name = `${folder}${entry.name}`;
      if (entry.isDirectory()) yield* this.list(`${name}/`);
      else {
        const file = await this.#withErrors(() => stat(join(this.#folder, name)).catch(toUndefinedIfMissing));
        if (file) yield { name, modified_at: file.mtimeMs };
      }
    }
  }

  remove(name: string): Promise<void> {
    return this.#withErrors(async () => {
      const path = join(this.#folder, name);
      await rm(path, { force: true });
      // Also deletes folders that have become empty.
      for (let folder = dirname(path); folder.length > this.#folder.length; folder = dirname(folder)) {
        if (
          !(await rmdir(folder).then(
            () => true,
            () => false,
          ))
        )
          break;
      }
    });
  }

  async check(): Promise<void> {
    const name = `probe-${uuid()}`;
    await this.put(name, new Uint8Array([1]));
    await this.remove(name);
  }

  async #withErrors<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof HomeBackupError) throw error;
      const { code = "", message } = error as { code?: string; message: string };
      const reason = { ENOSPC: "there is no space left", EDQUOT: "its quota is used up" }[code] ?? message;
      throw new HomeBackupError(`The folder ${this.#folder} cannot be used: ${reason}.`, { cause: error });
    }
  }
}

const toUndefinedIfMissing = (error: unknown): undefined => {
  if ((error as { code?: unknown }).code !== "ENOENT") throw error;
};

const flush = async (folder: string): Promise<void> => {
  await using handle = await open(folder, "r");
  await handle.sync();
};

type BucketSettings = ConstructorParameters<typeof Bucket>[0];

class BucketStorage implements BackupStorage {
  readonly url: string;
  readonly restic: BackupStorage["restic"];
  readonly #bucket: Bucket;
  readonly #prefix: string;

  constructor(settings: BucketSettings, clock: Clock) {
    const { endpoint, region, bucket, prefix, access_key, secret_key } = settings;
    this.#bucket = new Bucket(settings, { clock });
    this.#prefix = prefix;
    this.url = endpoint === undefined ? `s3://${bucket}/${prefix}` : `${endpoint}/${bucket}/${prefix}`;
    const host = endpoint ?? `https://s3.${region}.amazonaws.com`;
    this.restic = {
      repository: (folder) => `s3:${host}/${bucket}/${prefix}${folder}`,
      env: { AWS_ACCESS_KEY_ID: access_key, AWS_SECRET_ACCESS_KEY: secret_key, AWS_DEFAULT_REGION: region },
    };
  }

  put(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    return withSettingNames(this.#bucket.putBytes(this.#prefix + name, bytes));
  }

  get(name: string, max: number): Promise<Uint8Array | undefined> {
    return withSettingNames(this.#bucket.getBytes(this.#prefix + name, max));
  }

  async *list(folder: string): AsyncGenerator<StoredObject> {
    const objects = this.#bucket.list(this.#prefix + folder);
    for (;;) {
      const next = await withSettingNames(objects.next());
      if (next.done) return;
      yield { name: next.value.name.slice(this.#prefix.length), modified_at: next.value.modified_at };
    }
  }

  remove(name: string): Promise<void> {
    return withSettingNames(this.#bucket.remove(this.#prefix + name));
  }

  check(): Promise<void> {
    return withSettingNames(this.#bucket.check());
  }
}

/** Converts errors of the bucket, with the names of the settings for home backups. */
const withSettingNames = async <T>(work: Promise<T>): Promise<T> => {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof BucketError)) throw error;
    const message = error.message.replaceAll(/\bs3_/g, "home_backup_s3_");
    throw new HomeBackupError(`${message.charAt(0).toUpperCase()}${message.slice(1)}.`, { cause: error });
  }
};
