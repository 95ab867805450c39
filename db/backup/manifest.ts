// The manifest of a backup: manifest.json. It is written last, so a folder without a manifest is not a backup. Contains names, version and
// checksums; read by restore.ts, by scheduled backups and by people. Rejects unknown content.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { toRfc3339 } from "#base/clock.ts";

export const MANIFEST = "manifest.json";
export const DATABASE = "slipway.db";
export const KEY = "encryption.key";

/** Incremented when older programs cannot restore a new backup. */
const FORMAT = 1;

/** One file of a backup; `path` is relative, with `/`. */
export type BackedUp = { path: string; bytes: number; sha256: string };

export type Manifest = {
  format: number;
  /** The version of the program that created it. */
  version: string;
  commit: string;
  /** The version of the database schema, and the name of its last migration. */
  schema: { version: number; name: string };
  /** When the snapshot was taken, RFC 3339. */
  created_at: string;
  files: BackedUp[];
  /** The home backups of workspaces, whose files are not in this backup; absent without home backups. */
  homes?: HomesReference[];
};

/** Home backups that the database references, in one folder or bucket. */
export type HomesReference = {
  location: string;
  workspaces: number;
  backups: number;
  /** RFC 3339. */
  newest: string;
};

/** Why a backup cannot be used, as a message for people. */
export class BackupError extends Error {
  override readonly name = "BackupError";
}

export const makeManifest = (fields: Omit<Manifest, "format">): Manifest => ({ format: FORMAT, ...fields });

/** Parses and checks a manifest. Throws `BackupError`. */
export const parseManifest = (text: string, source: string): Manifest => {
  const damagedError = (what: string): BackupError => new BackupError(`${source} is damaged: ${what}`);
  let parsed: Partial<Manifest>;
  try {
    parsed = JSON.parse(text) as Partial<Manifest>;
  } catch {
    throw damagedError("its manifest is no JSON");
  }
  if (typeof parsed !== "object" || parsed === null || typeof parsed.format !== "number")
    throw damagedError("no known manifest");
  if (parsed.format > FORMAT) throw new BackupError(`${source} was made by a newer Slipway (${parsed.version})`);
  const { version, schema, created_at, files, commit = "", homes } = parsed;
  if (typeof version !== "string" || typeof schema?.version !== "number" || typeof created_at !== "string") {
    throw damagedError("its manifest is incomplete");
  }
  if (!Array.isArray(files) || !files.every(isBackedUp)) throw damagedError("its list of files is wrong");
  if (!files.some(({ path }) => path === DATABASE)) throw damagedError("it has no database");
  if (homes !== undefined && !(Array.isArray(homes) && homes.every(isReference)))
    throw damagedError("its homes are wrong");
  return { format: parsed.format, version, commit, schema, created_at, files, ...(homes ? { homes } : {}) };
};

const isReference = (one: Partial<HomesReference> | null): boolean =>
  typeof one?.location === "string" &&
  typeof one.newest === "string" &&
  Number.isSafeInteger(one.workspaces) &&
  Number.isSafeInteger(one.backups);

// Allows only names that a backup can contain, so that a path cannot lead out of the restore folder.
const FILE_NAME = /^(slipway\.db|encryption\.key|files\/[0-9a-f]{2}\/[0-9a-f]{64})$/;

const isBackedUp = (one: Partial<BackedUp> | null): boolean =>
  typeof one?.path === "string" &&
  FILE_NAME.test(one.path) &&
  Number.isSafeInteger(one.bytes) &&
  /^[0-9a-f]{64}$/.test(String(one.sha256));

/** Reads the manifest of a backup folder. Throws `BackupError`. */
export const readManifest = (folder: string): Manifest => {
  let text: string;
  try {
    text = readFileSync(join(folder, MANIFEST), "utf8");
  } catch (error) {
    if ((error as { code?: unknown }).code !== "ENOENT") throw error;
    throw new BackupError(`${folder} is not a backup: it has no ${MANIFEST}`);
  }
  return parseManifest(text, folder);
};

/** Returns the name of a backup of this moment. Names sort by time, oldest first. */
export const toBackupName = (now: number): string => `slipway-${toRfc3339(now).replace(/[:.]/g, "-")}`;

export const isBackupName = (name: string): boolean => /^slipway-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z$/.test(name);

/** Returns when the backup of this name was created, in milliseconds since 1970. */
export const parseBackupTime = (name: string): number =>
  Date.parse(name.slice("slipway-".length).replace(/T(\d\d)-(\d\d)-(\d\d)-/, "T$1:$2:$3."));
