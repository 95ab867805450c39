// `slipway migrate --to postgres://...` and `--to sqlite`: moves a whole installation between a data directory and PostgreSQL, while no
// server runs on either.
import { keepProcessAlive } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import { EncryptionKeyError } from "#base/encryption.ts";
import { armFailpoint } from "#base/failpoint.ts";
import { LockedError } from "#base/lock-file.ts";
import { BucketError } from "#base/network/bucket-error.ts";
import { usageError } from "#base/usage-error.ts";
import { DatabaseVersionError } from "#db/engine/migration.ts";
import { CommitError } from "#db/engine/store.ts";
import { redactPassword } from "#db/pg/hosts.ts";
import { EXIT, type VerbInput } from "../verb.ts";
import { changeToOwner } from "./ownership.ts";

const POSTGRES = /^postgres(ql)?:\/\/[^/?\s]+\/[^/?\s]+/;

/** Returns the exit code. `to`: an address, `postgres` for the one in `database_url`, or `sqlite`. */
export const move = async (input: VerbInput, config: Config, to: string, json: boolean): Promise<number> => {
  const { clock, signal, print, printError } = input;
  const { data_dir: directory, database_url } = config;
  const url = to === "sqlite" || to === "postgres" ? database_url : to;
  if (url === undefined)
    throw usageError("--to", "database_url is required: the PostgreSQL database to move from or to");
  if (!POSTGRES.test(url))
    throw usageError("--to", "expected postgres://user:password@host:port/database, postgres or sqlite");
  if (input.env.SLIPWAY_FAILPOINT) armFailpoint(input.env.SLIPWAY_FAILPOINT);
  const keepAlive = keepProcessAlive();
  const { CopyError } = await import("#db/pg/copied-tables.ts");
  const { UnsafeDatabaseError } = await import("#db/engine/unsafe.ts");
  const { makeBucket } = await import("#db/pg/uploads.ts");
  try {
    const onTable = (table: string, rows: number): void => {
      if (!json && rows > 0) print(`${table}: ${rows}`);
    };
    const options = { directory, url, now: clock.now(), bucket: makeBucket(config, clock), signal, onTable };
    let moved: { tables: number; rows: number; files: number };
    if (to === "sqlite") {
      const { copyIntoSqlite } = await import("#db/pg/copy-out.ts");
      moved = await copyIntoSqlite({ ...options, key: config.encryption_key });
    } else moved = await (await import("#db/pg/copy-in.ts")).copyIntoPostgres(options);
    if (json) print(JSON.stringify(moved));
    else {
      const destination = to === "sqlite" ? directory : redactPassword(url);
      print(
        `Moved ${moved.rows} rows of ${moved.tables} tables and ${moved.files} uploads into ${destination}; all were verified.`,
      );
      if (to !== "sqlite") print(`Give every node the key of this installation: encryption.key in ${directory}.`);
    }
    return EXIT.ok;
  } catch (error) {
    const kinds = [CopyError, UnsafeDatabaseError, LockedError, DatabaseVersionError, CommitError, EncryptionKeyError];
    const cause = error instanceof Error && error.cause instanceof BucketError ? error.cause : error;
    if (![...kinds, BucketError].some((kind) => cause instanceof kind)) throw error;
    printError(`slipway migrate: ${(cause as Error).message}\n`);
    return EXIT.failed;
  } finally {
    changeToOwner(directory, to === "sqlite");
    keepAlive.cancel();
  }
};
