// An empty database of the newest version, as the build makes it: a first start puts it in place instead of going through all steps of the
// schema, which took a fifth of its time. From source a new database goes through the steps.
import { Database } from "bun:sqlite";
import { closeSync, mkdtempSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { failpoint } from "#base/failpoint.ts";
import { flush } from "#base/system/flush.ts";
import { migrate, NOT_YET } from "./migrate.ts";
import { DATABASE, holdsDatabase } from "./moving.ts";

/** The name of the image in the program. */
export const IMAGE = "empty.db.zst";

/** Makes the image by the steps themselves, and compresses it. */
export const makeImage = (): Uint8Array => {
  const folder = mkdtempSync(join(tmpdir(), "slipway-image-"));
  try {
    const file = join(folder, DATABASE);
    using db = new Database(file, { create: true });
    db.run("pragma journal_mode=wal");
    db.run("pragma foreign_keys=on");
    migrate(db, { directory: folder, now: NOT_YET });
    // Without the pages that steps have left empty.
    db.run("vacuum");
    db.run("pragma wal_checkpoint(truncate)");
    return Bun.zstdCompressSync(readFileSync(file), { level: 19 });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

/** Reads the image out of the program. Undefined from source, and where the directory has a database already. */
export const readImage = async (directory: string): Promise<Uint8Array | undefined> => {
  if (holdsDatabase(directory)) return undefined;
  const embedded = Bun.embeddedFiles.find((one) => (one as Blob & { name: string }).name.endsWith(IMAGE));
  return embedded && new Uint8Array(await embedded.arrayBuffer());
};

/**
 * Gives the image the name of the database, whole and on the disk or not at all. A database with something in it stays as it is, and so does
 * one with a log or journal alongside it, which would be taken for the image's own. To be called by the one who has the lock of the directory.
 */
export const placeImage = (directory: string, image: Uint8Array): void => {
  if (holdsDatabase(directory)) return;
  const file = join(directory, DATABASE);
  const part = `${file}.part`;
  // One that a kill has left.
  rmSync(part, { force: true });
  const made = openSync(part, "wx", 0o600);
  try {
    writeFileSync(made, Bun.zstdDecompressSync(image));
  } finally {
    closeSync(made);
  }
  flush(part);
  failpoint("in_migration");
  renameSync(part, file);
  flush(directory);
};
