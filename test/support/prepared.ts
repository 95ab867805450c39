// A data directory as the first start leaves it, made once in a process and copied for each server: migrations and a password's hash at full
// cost are most of what starting a server of a test costs, and say nothing new the second time.
import { Database } from "bun:sqlite";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Config } from "#base/config.ts";
import { openDatabase } from "#db/engine/open.ts";
import { openContext } from "#src/context/open.ts";

/** The least that argon2id takes; the hash says so itself, so signing in is as quick. */
export const CHEAP = { algorithm: "argon2id", memoryCost: 8, timeCost: 1 } as const;

let made: Promise<string> | undefined;
let migrated: string | undefined;

/** Fills the empty folder with what a first start would leave there; `configOf` has the settings of such a start. */
export const fillPrepared = async (
  folder: string,
  configOf: (folder: string) => Config,
  password: string,
): Promise<void> => {
  made ??= prepare(configOf, password);
  cpSync(await made, folder, { recursive: true });
};

/** Fills the empty folder with a database of the newest version in which nothing is yet: for a first start that is the test's own. */
export const fillMigrated = (folder: string): void => {
  migrated ??= migrate();
  cpSync(migrated, folder, { recursive: true });
};

const migrate = (): string => {
  const folder = kept("slipway-migrated-");
  const { db, unlock } = openDatabase(folder, { cacheMb: 1, now: 0 });
  db.run("pragma wal_checkpoint(truncate)");
  db.close();
  unlock();
  return folder;
};

/** A folder that stays until the process ends. */
const kept = (prefix: string): string => {
  const folder = mkdtempSync(join(tmpdir(), prefix));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
};

const prepare = async (configOf: (folder: string) => Config, password: string): Promise<string> => {
  const folder = kept("slipway-prepared-");
  const context = await openContext({ config: configOf(folder) });
  await context[Symbol.asyncDispose]();
  const hash = await Bun.password.hash(password, CHEAP);
  using db = new Database(join(folder, "slipway.db"));
  db.run("update users set password_hash = ? where password_hash <> ''", [hash]);
  return folder;
};
