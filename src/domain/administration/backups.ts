// Backups that an owner asks for while the server runs.
import { conflict, notFound } from "#base/errors.ts";
import { BusyError } from "#db/backup/by-hand.ts";
import type { Backups } from "#schema/administration/backup.ts";
import type { DomainContext } from "../context.ts";

type Deps = Pick<DomainContext, "backupsByHand" | "config">;

/** Begins to make one, and answers how things stand. 409 while another is made or checked. */
export const makeBackupNow = async ({ backupsByHand, config }: Deps): Promise<Backups> => {
  if (config.database_url) throw conflict("The database is PostgreSQL: it is backed up where it runs.");
  try {
    backupsByHand.make();
  } catch (error) {
    throw refusal(error);
  }
  return backupsByHand.list();
};

/** Begins to read it whole. 404, and 409 while another is made or checked. */
export const checkBackup = async ({ backupsByHand }: Deps, name: string): Promise<Backups> => {
  const found = await backupsByHand.check(name).catch((error) => Promise.reject(refusal(error)));
  if (!found) throw notFound();
  return backupsByHand.list();
};

const refusal = (error: unknown): unknown =>
  error instanceof BusyError ? conflict(`Wait for the other: ${error.message}.`) : error;
