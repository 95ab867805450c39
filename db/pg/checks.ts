// Checks a PostgreSQL server before use. Each of these problems would silently lose or change data.
import type { ReservedSQL } from "bun";
import { UnsafeDatabaseError } from "../engine/unsafe.ts";

const MIN_SERVER_VERSION = 150_000;

/** Throws UnsafeDatabaseError. */
export const checkDatabase = async (connection: ReservedSQL): Promise<void> => {
  const [found] = await connection.unsafe(`select current_setting('server_version_num')::int as version,
    current_setting('fsync') as fsync, current_setting('synchronous_commit') as synchronous_commit,
    current_setting('full_page_writes') as full_page_writes, current_setting('server_encoding') as encoding,
    (select datcollate from pg_database where datname = current_database()) as collation`);
  const problems = [
    [found.version < MIN_SERVER_VERSION, "it is older than PostgreSQL 15"],
    [found.fsync === "off", "fsync is off: what is acknowledged would not be on disk"],
    [found.synchronous_commit === "off", "synchronous_commit is off: what is acknowledged would not be on disk"],
    [found.full_page_writes === "off", "full_page_writes is off: a crash could tear pages"],
    [found.encoding !== "UTF8", `its encoding is ${found.encoding}, not UTF8`],
    [
      !["C", "POSIX"].includes(found.collation),
      `its collation is ${found.collation}, not C: make it with \`create database slipway template template0 encoding 'utf8' locale 'C'\``,
    ],
  ] as const;
  const reasons = problems.flatMap(([isWrong, why]) => (isWrong ? [why] : []));
  if (reasons.length > 0) throw new UnsafeDatabaseError(`this PostgreSQL cannot be used: ${reasons.join("; ")}`);
};
