// Backups that an owner starts while the server runs.
import { conflict, notFound } from "#base/errors.ts";
import { BusyError } from "#db/backup/by-hand.ts";
import type { Backups } from "#schema/administration/backup.ts";
import type { DomainContext } from "../context.ts";

type Deps = Pick<DomainContext, "backupsByHand" | "config">;

/** Starts a backup and returns the current state. Rejects with 409 while another one is created or verified. */
export const makeBackupNow = async ({ backupsByHand, config }: Deps): Promise<Backups> => {
  if (config.database_url) throw conflict("The database is PostgreSQL: it is backed up where it runs.");
  try {
    backupsByHand.make();
  } catch (error) {
    throw toConflict(error);
  }
  return backupsByHand.list();
};

/** Starts verifying a backup. Rejects with 404, and with 409 while another one is created or verified. */
export const checkBackup = async ({ backupsByHand }: Deps, name: string): Promise<Backups> => {
  const found = await backupsByHand.check(name).catch((error) => Promise.reject(toConflict(error)));
  if (!found) throw notFound();
  return backupsByHand.list();
};

const toConflict = (error: unknown): unknown =>
  error instanceof BusyError ? conflict(`Wait for the other: ${error.message}.`) : error;
