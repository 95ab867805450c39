// Unpacks a template's archive into a folder. Never writes outside the folder or over existing files.
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { ArchiveError, type Source } from "#src/provisioners/archive-entry.ts";
import { readTar } from "#src/provisioners/archive-tar.ts";
import { readZip } from "#src/provisioners/archive-zip.ts";
import { VerbFailure } from "../../failure.ts";

/** Maximum size of a file in a template; an upload is smaller. */
const MAX_FILE_BYTES = 100 * 1024 * 1024;

/** Throws VerbFailure if the folder exists and is not empty, or cannot be read. */
export const ensureEmptyFolder = (folder: string): void => {
  let names: string[] = [];
  try {
    names = readdirSync(folder);
  } catch (error) {
    if ((error as { code?: string }).code !== "ENOENT") throw toWriteError(folder, error);
  }
  if (names.length > 0) throw new VerbFailure(`${folder} is not empty`);
};

/** Unpacks a tar or zip archive into an empty folder and returns the file names. Throws VerbFailure. */
export const unpack = async (archive: Uint8Array, folder: string): Promise<string[]> => {
  ensureEmptyFolder(folder);
  const isZip = archive[0] === 0x50 && archive[1] === 0x4b;
  try {
    const entries = await (isZip ? readZip : readTar)(toSource(archive));
    for (const entry of entries) {
      const path = join(folder, entry.name);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, await entry.read(MAX_FILE_BYTES), { mode: (entry.mode & 0o111) === 0 ? 0o644 : 0o755 });
    }
    return entries.map(({ name }) => name);
  } catch (error) {
    throw error instanceof ArchiveError ? new VerbFailure(error.message) : toWriteError(folder, error);
  }
};

const toWriteError = (folder: string, error: unknown): VerbFailure =>
  new VerbFailure(`${folder} cannot be written: ${(error as Error).message}`);

const toSource = (bytes: Uint8Array): Source => ({
  size: bytes.byteLength,
  read: async (offset, length) => bytes.subarray(offset, offset + length) as Uint8Array<ArrayBuffer>,
});
