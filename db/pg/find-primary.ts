// Finds which of several PostgreSQL servers accepts writes: the server that is not a standby. Of two such servers, it is the one that was
// promoted last, because a former primary that returns does not know that it was replaced.
import { type ReservedSQL, SQL } from "bun";
import { systemClock } from "#base/clock.ts";
import { finishesWithin } from "#base/retry.ts";

export const CONNECT_TIMEOUT_SECONDS = 2;
/** Timeout for a server's answer after it accepted the connection. */
const ANSWER_TIMEOUT_MS = 2000;
/** How long to wait for other servers that may also be primaries, once one has answered. */
const OTHER_HOSTS_TIMEOUT_MS = 250;

export type PrimaryConnection = {
  readonly host: string;
  readonly sql: SQL;
  readonly connection: ReservedSQL;
  /** Increases when a standby is promoted: eight hexadecimal digits. */
  readonly timeline: string;
};

/** Asks all hosts in parallel, so that one that hangs does not delay the others. Without a primary, throws the error of one of them. */
export const findPrimary = async (hosts: readonly string[]): Promise<PrimaryConnection> => {
  const answered: PrimaryConnection[] = [];
  let chosen: PrimaryConnection | undefined;
  const attempts = hosts.map(async (host) => {
    const found = await connectToPrimary(host);
    if (chosen) closeQuietly(found.sql);
    else answered.push(found);
  });
  await Promise.any(attempts).catch(({ errors }: AggregateError) => {
    throw errors[0];
  });
  await finishesWithin(systemClock, OTHER_HOSTS_TIMEOUT_MS, Promise.allSettled(attempts));
  const newest = answered.reduce((best, one) => (one.timeline > best.timeline ? one : best));
  chosen = newest;
  for (const { sql } of answered) if (sql !== newest.sql) closeQuietly(sql);
  return newest;
};

/** Throws if the host is a standby or does not answer. */
const connectToPrimary = async (host: string): Promise<PrimaryConnection> => {
  const sql = new SQL(host, { max: 1, bigint: true, connectionTimeout: CONNECT_TIMEOUT_SECONDS, idleTimeout: 0 });
  try {
    const connection = await sql.reserve();
    // The timeline is null on a standby, which does not write.
    const query = connection.unsafe(
      "select case when not pg_is_in_recovery() then left(pg_walfile_name(pg_current_wal_lsn()), 8) end as timeline",
    );
    // A frozen server accepts connections without answering.
    if (!(await finishesWithin(systemClock, ANSWER_TIMEOUT_MS, query))) throw new Error("the server does not respond");
    const [row] = await query;
    if (row.timeline === null) throw new Error("the server is a standby");
    return { host, sql, connection, timeline: row.timeline };
  } catch (error) {
    closeQuietly(sql);
    throw error;
  }
};

const closeQuietly = (sql: SQL): void => void sql.close({ timeout: 0 }).catch(() => {});
