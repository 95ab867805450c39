// Inspects a PostgreSQL database without changing it, for `slipway doctor`: determines whether it is usable, its schema version, and the
// active nodes.
import { type ReservedSQL, SQL } from "bun";
import { systemClock } from "#base/clock.ts";
import { finishesWithin } from "#base/retry.ts";
import { findVersionProblem, toNewestVersion } from "../engine/migration.ts";
import { UnsafeDatabaseError } from "../engine/unsafe.ts";
import { checkDatabase } from "./checks.ts";
import { CONNECT_TIMEOUT_SECONDS } from "./find-primary.ts";
import { redactPassword, splitHosts } from "./hosts.ts";
import { type ClusterView, loadClusterView } from "./lease.ts";
import { PG_MIGRATIONS } from "./migrations.ts";
import { Primary } from "./primary.ts";
import { getSqlState } from "./refusal.ts";
import { loadShardTable } from "./shards/table.ts";

/** Timeout for an answer of a primary, in milliseconds. */
const ANSWER_TIMEOUT_MS = 3000;

export type PostgresInspection = {
  /** PostgreSQL's version, such as "15.13". */
  readonly server: string;
  /** The schema version; 0 before the first start. */
  readonly schema: number;
  /** The newest version that this program knows. */
  readonly newest: number;
  /** Why this program cannot use the database. */
  readonly problem: string | undefined;
  /** Undefined before the first start. */
  readonly view: ClusterView | undefined;
  /** If every node is active: the number of shards per node. */
  readonly parts?: Readonly<Record<string, number>>;
};

/** Throws UnsafeDatabaseError if the database must not be used, and CommitError (`unreachable`) when no primary answers. */
export const inspectPostgres = async (url: string): Promise<PostgresInspection> => {
  const primary = new Primary(url, { wait_ms: ANSWER_TIMEOUT_MS });
  try {
    const connection = await primary.writer();
    await checkDatabase(connection);
    const [{ server }] = await connection.unsafe("select current_setting('server_version') as server");
    const schema = await readSchemaVersion(connection);
    const newest = toNewestVersion(PG_MIGRATIONS);
    const problem = findVersionProblem(PG_MIGRATIONS, schema);
    const view = schema === 0 ? undefined : await loadClusterView(connection, { isOlder: schema < newest });
    if (!view?.members.length) return { server, schema, newest, problem, view };
    const { owners } = await loadShardTable(connection);
    return {
      server,
      schema,
      newest,
      problem,
      view,
      parts: Object.fromEntries(owners.map(({ id, shards }) => [id, shards.length])),
    };
  } finally {
    await primary.close();
  }
};

/** SQLSTATE codes: authentication failed, the role or the database does not exist, or the role may not connect. */
const REFUSED_ACCESS = /^(28|3D|42501)/;

/**
 * Throws UnsafeDatabaseError when a host rejects the user, password or database of `database_url` and no other host accepts them. Waiting,
 * as for an unreachable host, would not help.
 */
export const checkAccess = async (url: string): Promise<void> => {
  const answers = await Promise.all(splitHosts(url).map(probeAccess));
  const refusal = answers.find((answer) => answer instanceof Error);
  if (!refusal || answers.includes("open")) return;
  const message = `database_url: PostgreSQL at ${redactPassword(url)} refuses the connection: ${refusal.message}. Correct the user, password or database in it, or create them.`;
  throw new UnsafeDatabaseError(message, { cause: refusal });
};

const probeAccess = async (host: string): Promise<"open" | "away" | Error> => {
  const sql = new SQL(host, { max: 1, connectionTimeout: CONNECT_TIMEOUT_SECONDS });
  try {
    const query = sql.unsafe("select 1");
    return (await finishesWithin(systemClock, ANSWER_TIMEOUT_MS, query)) ? "open" : "away";
  } catch (error) {
    return error instanceof Error && REFUSED_ACCESS.test(getSqlState(error)) ? error : "away";
  } finally {
    void sql.close({ timeout: 0 }).catch(() => {});
  }
};

const readSchemaVersion = async (connection: ReservedSQL): Promise<number> => {
  const [{ there }] = await connection.unsafe("select to_regclass('migrations') is not null as there");
  if (!there) return 0;
  const [{ version }] = await connection.unsafe("select coalesce(max(version), 0) as version from migrations");
  return Number(version);
};
