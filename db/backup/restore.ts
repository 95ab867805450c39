// Restores a backup into an empty folder. Copies all files into a staging folder, verifies the checksums of the manifest and lets SQLite
// check the database. After that, it moves the files into place, the database last, so a folder with a database contains the whole backup.
import { existsSync } from "node:fs";
import { chmod, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { toNewestVersion } from "../engine/migration.ts";
import { MIGRATIONS } from "../engine/migrations.ts";
import { type CopyResult, type Flow, flushFolder } from "./flow.ts";
import {
  BackupError,
  DATABASE,
  isBackupName,
  KEY,
  MANIFEST,
  type Manifest,
  parseManifest,
  readManifest,
} from "./manifest.ts";
import { checkDatabase } from "./snapshot.ts";
import { listTarEntries } from "./tar.ts";

const STAGING = ".restore";
const MAX_MANIFEST_BYTES = 256 * 1024 * 1024;

/** A backup, either a folder or a .tar file. */
type Source = AsyncDisposable & {
  manifest: Manifest;
  /** Copies one of the manifest's files to a path. Throws `BackupError` when it is missing. */
  copy(path: string, to: string): Promise<CopyResult>;
};

/** Restores `backup` (a folder or a .tar file) into `data_dir`, which must be empty or missing. Throws `BackupError`. */
export const restoreBackup = async (backup: string, data_dir: string, flow: Flow): Promise<Manifest> => {
  await using source = await openBackup(backup, flow);
  rejectNewer(source.manifest, backup);
  await rejectNonEmpty(data_dir);
  const staging = join(data_dir, STAGING);
  const created = await mkdir(staging, { recursive: true, mode: 0o700 });
  // Restored data is readable only by the server's user, even if the folder existed with other permissions.
  await chmod(data_dir, 0o700);
  try {
    await copyVerified(source, backup, staging);
    await moveIntoPlace(staging, data_dir);
  } catch (error) {
    // Deletes the folders that were created for this restore, so that a mistyped path leaves none behind.
    if (created !== undefined) await rm(created, { recursive: true, force: true });
    throw error;
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
  return source.manifest;
};

/** Reads all of a backup to check that it can be restored. `scratch` is a new folder for that. Throws `BackupError`. */
export const verifyBackup = async (backup: string, scratch: string, flow: Flow): Promise<Manifest> => {
  await using source = await openBackup(backup, flow);
  rejectNewer(source.manifest, backup);
  await copyVerified(source, backup, scratch);
  return source.manifest;
};

const copyVerified = async ({ manifest, copy }: Source, backup: string, to: string): Promise<void> => {
  for (const { path, bytes, sha256 } of manifest.files) {
    await mkdir(dirname(join(to, path)), { recursive: true, mode: 0o700 });
    const copied = await copy(path, join(to, path));
    if (copied.bytes === bytes && copied.sha256 === sha256) continue;
    throw new BackupError(`${backup} is damaged: ${path} does not have the checksum of the manifest`);
  }
  checkDatabase(join(to, DATABASE));
};

const moveIntoPlace = async (staging: string, data_dir: string): Promise<void> => {
  const names = await readdir(staging);
  for (const name of [...names.filter((one) => one !== DATABASE), DATABASE]) {
    for (const folder of name === "files" ? await readdir(join(staging, name)) : []) {
      await flushFolder(join(staging, name, folder));
    }
    if (name === "files") await flushFolder(join(staging, name));
    if (name === DATABASE) await flushFolder(data_dir);
    await rename(join(staging, name), join(data_dir, name));
  }
  await flushFolder(data_dir);
};

const rejectNewer = ({ schema, version }: Manifest, backup: string): void => {
  if (schema.version <= toNewestVersion(MIGRATIONS)) return;
  throw new BackupError(
    `${backup} was made by a newer Slipway (${version}, schema ${schema.version}; this one knows ${toNewestVersion(MIGRATIONS)})`,
  );
};

const rejectNonEmpty = async (data_dir: string): Promise<void> => {
  if (!existsSync(data_dir)) return;
  if (!(await stat(data_dir)).isDirectory()) throw new BackupError(`${data_dir} is not a folder`);
  const names = await readdir(data_dir);
  // Deletes leftovers of an interrupted restore, which is safe because it began in an empty folder and would have moved the database last.
  const isInterrupted = names.includes(STAGING) && !names.includes(DATABASE);
  const leftovers = isInterrupted ? [STAGING, "files", KEY] : [];
  // The root of a file system contains lost+found.
  const others = names.filter((name) => !leftovers.includes(name) && name !== "lost+found");
  if (others.length > 0) throw new BackupError(`${data_dir} is not empty: a backup is restored into an empty folder`);
  for (const name of leftovers) await rm(join(data_dir, name), { recursive: true, force: true });
};

const openBackup = async (backup: string, flow: Flow): Promise<Source> => {
  if (!existsSync(backup)) throw new BackupError(`there is no backup at ${backup}`);
  if (!(await stat(backup)).isDirectory()) return openTar(backup, flow);
  const newest = (await readdir(backup)).filter(isBackupName).sort().at(-1);
  if (newest !== undefined) throw new BackupError(`${backup} holds backups: name one, such as ${join(backup, newest)}`);
  return openFolder(backup, flow);
};

const openFolder = (folder: string, flow: Flow): Source => ({
  manifest: readManifest(folder),
  async copy(path, to) {
    if (!existsSync(join(folder, path))) throw new BackupError(`${folder} is damaged: ${path} is missing`);
    return flow.copyFile(join(folder, path), to);
  },
  async [Symbol.asyncDispose]() {},
});

const openTar = async (path: string, flow: Flow): Promise<Source> => {
  const file = await open(path, "r");
  try {
    const entries = new Map((await listTarEntries(file, path)).map((entry) => [entry.name, entry]));
    const manifestEntry = entries.get(MANIFEST);
    if (!manifestEntry || manifestEntry.size > MAX_MANIFEST_BYTES)
      throw new BackupError(`${path} is not a backup: it has no ${MANIFEST}`);
    const { buffer } = await file.read(Buffer.alloc(manifestEntry.size), 0, manifestEntry.size, manifestEntry.at);
    return {
      manifest: parseManifest(buffer.toString("utf8"), path),
      async copy(name, to) {
        const entry = entries.get(name);
        if (!entry) throw new BackupError(`${path} is damaged: ${name} is missing`);
        return flow.copy(file, to, { start: entry.at, limit: entry.size });
      },
      [Symbol.asyncDispose]: () => file.close(),
    };
  } catch (error) {
    await file.close();
    throw error;
  }
};
