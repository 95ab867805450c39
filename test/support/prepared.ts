// A data directory as a first start leaves it, created once per process and copied for each server. Migrations and password hashing at full
// cost are most of a test server's startup time, and need not be repeated.
import { Database } from "bun:sqlite";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Config } from "#base/config.ts";
import { openDatabase } from "#db/engine/open.ts";
import { openContext } from "#src/context/open.ts";

/** The minimum cost of argon2id. The hash contains its cost, so signing in is also fast. */
export const CHEAP_HASH = { algorithm: "argon2id", memoryCost: 8, timeCost: 1 } as const;

let preparation: Promise<string> | undefined;
let migrated: string | undefined;

/** Fills the empty folder with what a first start would create. `toConfig` returns its settings. */
export const fillPrepared = async (
  folder: string,
  toConfig: (folder: string) => Config,
  password: string,
): Promise<void> => {
  preparation ??= prepare(toConfig, password);
  cpSync(await preparation, folder, { recursive: true });
};

/** Fills the empty folder with an empty database of the latest version, for tests that run a first start themselves. */
export const fillMigrated = (folder: string): void => {
  migrated ??= migrate();
  cpSync(migrated, folder, { recursive: true });
};

const migrate = (): string => {
  const folder = createProcessFolder("slipway-migrated-");
  const { db, unlock } = openDatabase(folder, { cacheMb: 1, now: 0 });
  db.run("pragma wal_checkpoint(truncate)");
  db.close();
  unlock();
  return folder;
};

/** Creates a folder that stays until the process ends. */
const createProcessFolder = (prefix: string): string => {
  const folder = mkdtempSync(join(tmpdir(), prefix));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
};

const prepare = async (toConfig: (folder: string) => Config, password: string): Promise<string> => {
  const folder = createProcessFolder("slipway-prepared-");
  const context = await openContext({ config: toConfig(folder) });
  await context[Symbol.asyncDispose]();
  const hash = await Bun.password.hash(password, CHEAP_HASH);
  using db = new Database(join(folder, "slipway.db"));
  db.run("update users set password_hash = ? where password_hash <> ''", [hash]);
  return folder;
};
