// Migrates a PostgreSQL database to this version: one transaction per migration, under an advisory lock, so that of several nodes that
// start at the same time, one migrates and the others wait.
import type { ReservedSQL } from "bun";
import { failpoint } from "#base/failpoint.ts";
import { log } from "#base/log.ts";
import {
  DatabaseVersionError,
  findVersionProblem,
  listMissingMigrations,
  type Migration,
} from "../engine/migration.ts";
import compat from "./compat.sql" with { type: "text" };
import { PG_MIGRATIONS } from "./migrations.ts";

/** An arbitrary number, unlikely to be used by other programs in the database. */
const MIGRATION_LOCK = 5_710_321_977;
const STATEMENT_BREAK = "--> statement-breakpoint";

/** Returns the names of the applied migrations; `now` is in milliseconds since 1970. Throws DatabaseVersionError. */
export const migratePostgres = async (
  connection: ReservedSQL,
  { now, migrations = PG_MIGRATIONS }: { now: number; migrations?: readonly Migration[] },
): Promise<string[]> => {
  await connection.unsafe(`select pg_advisory_lock(${MIGRATION_LOCK})`);
  try {
    await connection.unsafe(
      "create table if not exists migrations (version bigint primary key, name text not null, applied_at bigint not null)",
    );
    const [{ version }] = await connection.unsafe("select coalesce(max(version), 0) as version from migrations");
    const current = Number(version);
    const problem = findVersionProblem(migrations, current);
    if (problem) throw new DatabaseVersionError(problem);
    const missing = listMissingMigrations(migrations, current);
    await runInTransaction(connection, splitStatements(compat));
    for (const step of missing) {
      await runInTransaction(connection, splitStatements(step.sql), async () => {
        await connection.unsafe("insert into migrations (version, name, applied_at) values ($1, $2, $3)", [
          ...[step.version, step.name, now],
        ]);
        failpoint("in_migration");
      }).catch((cause) => {
        throw new Error(`migration ${step.name} failed`, { cause });
      });
      // A new database has no upgrade to report.
      if (current > 0) log("db").info("upgrade step applied", { step: step.name, schema: step.version });
    }
    return missing.map(({ name }) => name);
  } finally {
    await connection.unsafe(`select pg_advisory_unlock(${MIGRATION_LOCK})`);
  }
};

const splitStatements = (sql: string): string[] => sql.split(STATEMENT_BREAK).filter((text) => text.trim() !== "");

const runInTransaction = async (
  connection: ReservedSQL,
  statements: readonly string[],
  beforeCommit: () => Promise<void> = async () => {},
): Promise<void> => {
  await connection.unsafe("begin");
  try {
    // On a busy machine, a transaction with a migration's many statements may be idle for longer than the timeout of ordinary transactions.
    await connection.unsafe("set local idle_in_transaction_session_timeout = '1min'");
    for (const text of statements) await connection.unsafe(text);
    await beforeCommit();
    await connection.unsafe("commit");
  } catch (error) {
    await connection.unsafe("rollback");
    throw error;
  }
};
