// Backs up a data directory, whether or not a server runs on it, to a folder or a single .tar file. A backup contains the database, the
// uploaded files that it references, and the key that decrypts its secrets, so it is as secret as the data directory itself.
import { existsSync } from "node:fs";
import { chmod, link, mkdir, open, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { type Clock, toRfc3339 } from "#base/clock.ts";
import { COMMIT, VERSION } from "#base/version.ts";
import { Flow, flushFolder, flushName, writeAll } from "./flow.ts";
import {
  type BackedUp,
  BackupError,
  DATABASE,
  KEY,
  MANIFEST,
  type Manifest,
  makeManifest,
  toBackupName,
} from "./manifest.ts";
import { DatabaseCopy, finishCopy } from "./snapshot.ts";
import { packTar } from "./tar.ts";

export type BackupOptions = {
  data_dir: string;
  /** A path ending in `.tar` is the file to create. Any other path is the folder in which the backup folder is created. */
  target: string;
  clock: Clock;
  /** MiB per second; 0 for unlimited. */
  rateMb: number;
  /** Called with the number of bytes read so far. */
  onProgress?: (bytes: number) => void;
  signal: AbortSignal;
  /**
   * Called when the database is copied, so that its log may be truncated again. The remaining work uses the most CPU time, but does not
   * delay the server.
   */
  copied?(): void;
};

export type CreatedBackup = { path: string; bytes: number; manifest: Manifest };

/** A file that the snapshot references was deleted concurrently. A newer snapshot does not reference the file. */
class FileDeletedError extends BackupError {}

const MAX_ATTEMPTS = 5;

/** Creates a backup, which gets its final name once it is complete and flushed. Throws `BackupError`, or the disk's errors. */
export const makeBackup = async (options: BackupOptions): Promise<CreatedBackup> => {
  const { target, clock } = options;
  const isTar = target.endsWith(".tar");
  const path = isTar ? target : join(target, toBackupName(clock.now()));
  if (existsSync(path)) throw new BackupError(`${path} exists already`);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const partial = join(dirname(path), `.${basename(path)}.part`);
  const flow = new Flow(clock, options.rateMb, options.signal, options.onProgress);
  try {
    const manifest = await createPartial(partial, options, flow);
    const bytes = manifest.files.reduce((sum, file) => sum + file.bytes, 0);
    if (isTar) await pack(partial, path, manifest, flow);
    else await rename(partial, path);
    await flushName(path);
    return { path, bytes, manifest };
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
};

const pack = async (folder: string, path: string, manifest: Manifest, flow: Flow): Promise<void> => {
  const part = `${folder}.tar`;
  try {
    await packTar(folder, [MANIFEST, ...manifest.files.map((file) => file.path)], part, flow);
    await renameWithoutOverwriting(part, path);
  } finally {
    await rm(part, { force: true });
  }
};

/**
 * Renames the file without overwriting one that was created concurrently, if the file system supports hard links. File systems of USB
 * sticks and some network file systems do not.
 */
const renameWithoutOverwriting = async (part: string, path: string): Promise<void> => {
  try {
    await link(part, path);
  } catch (error) {
    const lacksHardLinks = /^(EPERM|ENOTSUP|EOPNOTSUPP|ENOSYS)$/.test(String((error as { code?: unknown }).code));
    if (!lacksHardLinks || existsSync(path)) throw error;
    await rename(part, path);
  }
};

const createPartial = async (part: string, options: BackupOptions, flow: Flow): Promise<Manifest> => {
  await rm(part, { recursive: true, force: true });
  await mkdir(part, { mode: 0o700 });
  await using copy = await DatabaseCopy.begin(join(options.data_dir, DATABASE), join(part, DATABASE), flow);
  for (let i = 0; ; i++) {
    try {
      return await finish(part, options, flow, copy);
    } catch (error) {
      if (!(error instanceof FileDeletedError) || i + 1 === MAX_ATTEMPTS) throw error;
    }
  }
};

const finish = async (
  part: string,
  { data_dir, clock, copied }: BackupOptions,
  flow: Flow,
  copy: DatabaseCopy,
): Promise<Manifest> => {
  await using pins = await Pins.make(data_dir, basename(part));
  const files: BackedUp[] = [];
  let created_at = "";
  const { schema, hashes, homes } = await copy.copyCommitted(flow, async (snapshot) => {
    created_at = toRfc3339(clock.now());
    // Pinned files can be copied after the read transaction, which keeps the database's log from being truncated.
    for (const hash of snapshot.hashes) await pins.add(hash);
  });
  copied?.();
  finishCopy(join(part, DATABASE));
  files.push({ path: DATABASE, ...(await flow.hash(join(part, DATABASE))) });
  for (const hash of hashes) files.push(await copyUpload(pins.toPath(hash), part, hash, flow));
  if (existsSync(join(data_dir, KEY))) files.push(await copyKey(data_dir, part, flow));
  const fields = { version: VERSION, commit: COMMIT, schema, created_at, files };
  const manifest = makeManifest(homes.length > 0 ? { ...fields, homes } : fields);
  await flushFolder(part);
  await writeManifest(part, manifest);
  return manifest;
};

/** Hard links to uploaded files, so that they can be copied even if the server deletes them during the backup. */
class Pins implements AsyncDisposable {
  readonly #data_dir: string;
  readonly #folder: string;

  private constructor(data_dir: string, folder: string) {
    this.#data_dir = data_dir;
    this.#folder = folder;
  }

  static async make(data_dir: string, name: string): Promise<Pins> {
    const folder = join(data_dir, "backups", `${name}-pins`);
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return new Pins(data_dir, folder);
  }

  async add(hash: string): Promise<void> {
    try {
      await link(join(this.#data_dir, uploadPath(hash)), this.toPath(hash));
    } catch (error) {
      if ((error as { code?: unknown }).code !== "ENOENT") throw error;
      throw new FileDeletedError(`the uploaded file ${uploadPath(hash)} is missing`, { cause: error });
    }
  }

  toPath(hash: string): string {
    return join(this.#folder, hash);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return rm(this.#folder, { recursive: true, force: true });
  }
}

const uploadPath = (hash: string): string => `files/${hash.slice(0, 2)}/${hash}`;

const copyKey = async (data_dir: string, part: string, flow: Flow): Promise<BackedUp> => {
  const result = await flow.copyFile(join(data_dir, KEY), join(part, KEY));
  await chmod(join(part, KEY), 0o600);
  return { path: KEY, ...result };
};

const copyUpload = async (from: string, part: string, hash: string, flow: Flow): Promise<BackedUp> => {
  const path = uploadPath(hash);
  await mkdir(join(part, dirname(path)), { recursive: true, mode: 0o700 });
  const result = await flow.copyFile(from, join(part, path));
  if (result.sha256 !== hash) throw new BackupError(`the uploaded file ${path} is damaged`);
  return { path, ...result };
};

const writeManifest = async (folder: string, manifest: Manifest): Promise<void> => {
  {
    await using file = await open(join(folder, MANIFEST), "wx", 0o600);
    await writeAll(file, Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`));
    await file.sync();
  }
  await flushFolder(folder);
};
