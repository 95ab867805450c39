// Looks at a PostgreSQL without changing anything, for `slipway doctor`: whether it can be used, how far its schema is, who is active.
import type { ReservedSQL } from "bun";
import { newestVersion, versionProblem } from "../engine/migration.ts";
import { checkDatabase } from "./checks.ts";
import { type ClusterView, viewCluster } from "./lease.ts";
import { PG_MIGRATIONS } from "./migrations.ts";
import { lookAtParts } from "./parts/table.ts";
import { Primary } from "./primary.ts";

/** Milliseconds in which a primary has to answer. */
const WAIT_MS = 3000;

export type FoundPostgres = {
  /** Such as "15.13". */
  readonly server: string;
  /** The version of its schema; 0 before the first start. */
  readonly schema: number;
  /** The newest that this program knows. */
  readonly newest: number;
  /** Why this program cannot use the database. */
  readonly problem: string | undefined;
  /** Undefined before the first start. */
  readonly view: ClusterView | undefined;
  /** Where every node is active: how many parts each has. */
  readonly parts?: Readonly<Record<string, number>>;
};

/** Throws UnsafeDatabaseError when it may not be used, CommitError (`overloaded`) when no primary answers. */
export const inspectPostgres = async (url: string): Promise<FoundPostgres> => {
  const primary = new Primary(url, { wait_ms: WAIT_MS });
  try {
    const connection = await primary.writer();
    await checkDatabase(connection);
    const [{ server }] = await connection.unsafe("select current_setting('server_version') as server");
    const schema = await schemaOf(connection);
    const newest = newestVersion(PG_MIGRATIONS);
    const problem = versionProblem(PG_MIGRATIONS, schema);
    const view = schema === 0 ? undefined : await viewCluster(connection, { isOlder: schema < newest });
    if (!view?.members.length) return { server, schema, newest, problem, view };
    const { owners } = await lookAtParts(connection);
    return {
      server,
      schema,
      newest,
      problem,
      view,
      parts: Object.fromEntries(owners.map(({ id, parts }) => [id, parts.length])),
    };
  } finally {
    await primary.close();
  }
};

const schemaOf = async (connection: ReservedSQL): Promise<number> => {
  const [{ there }] = await connection.unsafe("select to_regclass('migrations') is not null as there");
  if (!there) return 0;
  const [{ version }] = await connection.unsafe("select coalesce(max(version), 0) as version from migrations");
  return Number(version);
};
