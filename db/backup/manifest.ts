// What a backup says of itself: manifest.json, written last, so that a folder without one is no backup. Names, version and checksums;
// read by restore.ts, by the scheduled backups and by people. Refuses what it does not know.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { rfc3339 } from "#base/clock.ts";

export const MANIFEST = "manifest.json";
export const DATABASE = "slipway.db";
export const KEY = "encryption.key";

/** Raised when an older program could not restore what a newer one writes. */
const FORMAT = 1;

/** One file of a backup; `path` is relative, with `/`. */
export type BackedUp = { path: string; bytes: number; sha256: string };

export type Manifest = {
  format: number;
  /** The program that made it. */
  version: string;
  commit: string;
  /** How many migrations its database has had, and the last one's name. */
  schema: { version: number; name: string };
  /** When the snapshot was taken, RFC 3339. */
  created_at: string;
  files: BackedUp[];
  /** Where the files of workspaces are backed up, which are not in it; absent where they are not. */
  homes?: HomesReference[];
};

/** Home backups that the database knows, in one folder or bucket. */
export type HomesReference = {
  location: string;
  workspaces: number;
  backups: number;
  /** RFC 3339. */
  newest: string;
};

/** A backup that cannot be used, in words for people. */
export class BackupError extends Error {
  override readonly name = "BackupError";
}

export const makeManifest = (facts: Omit<Manifest, "format">): Manifest => ({ format: FORMAT, ...facts });

/** Reads and checks the text of a manifest. Throws `BackupError`. */
export const parseManifest = (text: string, where: string): Manifest => {
  const damaged = (what: string): BackupError => new BackupError(`${where} is damaged: ${what}`);
  let read: Partial<Manifest>;
  try {
    read = JSON.parse(text) as Partial<Manifest>;
  } catch {
    throw damaged("its manifest is no JSON");
  }
  if (typeof read !== "object" || read === null || typeof read.format !== "number") throw damaged("no known manifest");
  if (read.format > FORMAT) throw new BackupError(`${where} was made by a newer Slipway (${read.version})`);
  const { version, schema, created_at, files, commit = "", homes } = read;
  if (typeof version !== "string" || typeof schema?.version !== "number" || typeof created_at !== "string") {
    throw damaged("its manifest is incomplete");
  }
  if (!Array.isArray(files) || !files.every(isBackedUp)) throw damaged("its list of files is wrong");
  if (!files.some(({ path }) => path === DATABASE)) throw damaged("it has no database");
  if (homes !== undefined && !(Array.isArray(homes) && homes.every(isReference))) throw damaged("its homes are wrong");
  return { format: read.format, version, commit, schema, created_at, files, ...(homes ? { homes } : {}) };
};

const isReference = (one: Partial<HomesReference> | null): boolean =>
  typeof one?.location === "string" &&
  typeof one.newest === "string" &&
  Number.isSafeInteger(one.workspaces) &&
  Number.isSafeInteger(one.backups);

// Only names that a backup can have: nothing that leads out of the folder it is restored to.
const NAMES = /^(slipway\.db|encryption\.key|files\/[0-9a-f]{2}\/[0-9a-f]{64})$/;

const isBackedUp = (one: Partial<BackedUp> | null): boolean =>
  typeof one?.path === "string" &&
  NAMES.test(one.path) &&
  Number.isSafeInteger(one.bytes) &&
  /^[0-9a-f]{64}$/.test(String(one.sha256));

/** The manifest of a backup folder. Throws `BackupError`. */
export const readManifest = (folder: string): Manifest => {
  let text: string;
  try {
    text = readFileSync(join(folder, MANIFEST), "utf8");
  } catch (error) {
    if ((error as { code?: unknown }).code !== "ENOENT") throw error;
    throw new BackupError(`${folder} is no backup: it has no ${MANIFEST}`);
  }
  return parseManifest(text, folder);
};

/** The name of a backup of this moment; in the order of names the oldest comes first. */
export const backupName = (now: number): string => `slipway-${rfc3339(now).replace(/[:.]/g, "-")}`;

export const isBackupName = (name: string): boolean => /^slipway-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z$/.test(name);

/** When a backup of this name was made, milliseconds since 1970. */
export const timeOfName = (name: string): number =>
  Date.parse(name.slice("slipway-".length).replace(/T(\d\d)-(\d\d)-(\d\d)-/, "T$1:$2:$3."));
