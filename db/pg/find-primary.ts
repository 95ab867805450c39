// Which of several PostgreSQL servers takes the writes: the one that is no standby, and of two the one that was promoted last. A primary
// that returns after another has taken its place does not know of that.
import { type ReservedSQL, SQL } from "bun";
import { systemClock } from "#base/clock.ts";
import { within } from "#base/retry.ts";

export const CONNECT_SECONDS = 2;
/** Milliseconds that a server has to say what it is, once it has taken the connection. */
const ANSWER_MS = 2000;
/** Milliseconds that the others have to say that they are primaries, too, once one has. */
const OTHERS_MS = 250;

export type FoundPrimary = {
  readonly host: string;
  readonly sql: SQL;
  readonly connection: ReservedSQL;
  /** Rises when a standby is promoted: eight hexadecimal digits. */
  readonly timeline: string;
};

/** All are asked immediately, so that one that hangs keeps nobody waiting. Throws what one of them said when none is a primary. */
export const findPrimary = async (hosts: readonly string[]): Promise<FoundPrimary> => {
  const answered: FoundPrimary[] = [];
  let chosen: FoundPrimary | undefined;
  const asked = hosts.map(async (host) => {
    const found = await askHost(host);
    if (chosen) giveUp(found.sql);
    else answered.push(found);
  });
  await Promise.any(asked).catch(({ errors }: AggregateError) => {
    throw errors[0];
  });
  await within(systemClock, OTHERS_MS, Promise.allSettled(asked));
  const newest = answered.reduce((best, one) => (one.timeline > best.timeline ? one : best));
  chosen = newest;
  for (const { sql } of answered) if (sql !== newest.sql) giveUp(sql);
  return newest;
};

/** Throws where it is a standby, or does not answer. */
const askHost = async (host: string): Promise<FoundPrimary> => {
  const sql = new SQL(host, { max: 1, bigint: true, connectionTimeout: CONNECT_SECONDS, idleTimeout: 0 });
  try {
    const connection = await sql.reserve();
    // A standby writes to no timeline.
    const asking = connection.unsafe(
      "select case when not pg_is_in_recovery() then left(pg_walfile_name(pg_current_wal_lsn()), 8) end as timeline",
    );
    // A server that stands still takes connections and says nothing on them.
    if (!(await within(systemClock, ANSWER_MS, asking))) throw new Error("it does not answer");
    const [row] = await asking;
    if (row.timeline === null) throw new Error("it is a standby");
    return { host, sql, connection, timeline: row.timeline };
  } catch (error) {
    giveUp(sql);
    throw error;
  }
};

const giveUp = (sql: SQL): void => void sql.close({ timeout: 0 }).catch(() => {});
