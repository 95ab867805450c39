// Runs offline operations on a data directory or a cluster's database: accounts and tokens, managed by anyone with access to the machine.
// Takes the server's lock or the cluster's lease, so it never runs next to a server. An older database must be migrated with `serve` or
// `migrate`.
import { keepProcessAlive } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import { AppError } from "#base/errors.ts";
import { LockedError } from "#base/lock-file.ts";
import { inspectDatabase } from "#db/engine/inspect.ts";
import { openLocalStore } from "#db/engine/local.ts";
import { DatabaseVersionError } from "#db/engine/migration.ts";
import type { Store } from "#db/engine/store.ts";
import { changeToOwner } from "../server/ownership.ts";
import { EXIT, type VerbInput } from "../verb.ts";
import { MachineError } from "./error.ts";

/** Opens the store of the data directory for `work`. `mayCreate`: whether a new directory may be created. Returns the exit code. */
export const runOnMachine = async (
  verb: string,
  { clock, printError }: VerbInput,
  config: Config,
  work: (store: Store) => Promise<void>,
  { mayCreate = false } = {},
): Promise<number> => {
  const keepAlive = keepProcessAlive();
  try {
    const printFatal = (error: Error): void => printError(`slipway ${verb}: ${error.message}\n`);
    if (config.database_url !== undefined) {
      const { runOnCluster } = await import("./cluster.ts");
      await runOnCluster(config.database_url, { config, clock, fatal: printFatal, mayCreate }, work);
      return EXIT.ok;
    }
    if (!mayCreate) requireCurrentSchema(config);
    const store = openLocalStore({ directory: config.data_dir, cacheMb: 8, now: clock.now(), fatal: printFatal });
    try {
      await work(store);
    } finally {
      await store.close();
      changeToOwner(config.data_dir);
    }
    return EXIT.ok;
  } catch (error) {
    const reason = findReason(error);
    if (reason === undefined) throw error;
    printError(`slipway ${verb}: ${reason}\n`);
    return EXIT.failed;
  } finally {
    keepAlive.cancel();
  }
};

const requireCurrentSchema = ({ data_dir }: Config): void => {
  const { exists, schema, newest } = inspectDatabase(data_dir);
  if (!exists) throw new MachineError(`there is no database in ${data_dir}; name its folder with --data-dir`);
  if (schema < newest) {
    throw new MachineError(
      "the database is from an older version; upgrade it with `slipway migrate` or by starting the server",
    );
  }
};

const findReason = (error: unknown): string | undefined => {
  if (error instanceof LockedError) {
    return `${error.message}; stop the server first, or use the web UI or API while it runs`;
  }
  if (error instanceof MachineError || error instanceof DatabaseVersionError) return error.message;
  if (error instanceof AppError) {
    return [error.message, error.detail, ...error.validations.map(({ field, detail }) => `${field}: ${detail}`)]
      .filter(Boolean)
      .join(" ");
  }
  const { code = "" } = error as { code?: string };
  return /^(EACCES|EPERM|EROFS|ENOSPC|ENOTDIR)$/.test(code) ? (error as Error).message : undefined;
};
