// The image: an empty database of the newest version, created when the program is built. A first start copies the image instead of running
// all migrations, which would take a fifth of the start. When the program runs from source, a new database runs the migrations.
import { Database } from "bun:sqlite";
import { closeSync, mkdtempSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { failpoint } from "#base/failpoint.ts";
import { flush } from "#base/system/flush.ts";
import { IMAGE_TIME, migrate } from "./migrate.ts";
import { DATABASE, hasDatabaseFile } from "./move-installation.ts";

/** The name of the image in the executable. */
export const IMAGE = "empty.db.zst";

/** Creates the image by running the migrations, and compresses it. */
export const makeImage = (): Uint8Array => {
  const folder = mkdtempSync(join(tmpdir(), "slipway-image-"));
  try {
    const file = join(folder, DATABASE);
    using db = new Database(file, { create: true });
    db.run("pragma journal_mode=wal");
    db.run("pragma foreign_keys=on");
    migrate(db, { directory: folder, now: IMAGE_TIME });
    // Removes pages that migrations left empty.
    db.run("vacuum");
    db.run("pragma wal_checkpoint(truncate)");
    return Bun.zstdCompressSync(readFileSync(file), { level: 19 });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

/**
 * Reads the image from the executable. Returns undefined when the program runs from source, or when the directory already has a database.
 */
export const readImage = async (directory: string): Promise<Uint8Array | undefined> => {
  if (hasDatabaseFile(directory)) return undefined;
  const embedded = Bun.embeddedFiles.find((one) => (one as Blob & { name: string }).name.endsWith(IMAGE));
  return embedded && new Uint8Array(await embedded.arrayBuffer());
};

/**
 * Writes and flushes the image under a temporary name, and renames it to the database. Does nothing if there is a non-empty database, or a
 * log or journal, which SQLite would mistake for the image's. The caller must hold the directory's lock.
 */
export const installImage = (directory: string, image: Uint8Array): void => {
  if (hasDatabaseFile(directory)) return;
  const file = join(directory, DATABASE);
  const partialPath = `${file}.part`;
  // A leftover of a killed process.
  rmSync(partialPath, { force: true });
  const created = openSync(partialPath, "wx", 0o600);
  try {
    writeFileSync(created, Bun.zstdDecompressSync(image));
  } finally {
    closeSync(created);
  }
  flush(partialPath);
  failpoint("in_migration");
  renameSync(partialPath, file);
  flush(directory);
};
