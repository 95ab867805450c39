// Findings of `slipway doctor` about a cluster's PostgreSQL: whether it is usable, its latency, which nodes are active and which stand by.
import type { Config } from "#base/config.ts";
import { SHARD_COUNT } from "#base/shards.ts";
import type { PostgresInspection } from "#db/pg/inspect.ts";
import type { NodeRow } from "#db/pg/lease.ts";
import type { Finding } from "./finding.ts";

/** A node that was silent for this long has ended or hangs; nodes report every second. */
const SILENCE_TIMEOUT_MS = 30_000;

/** Returns findings about the database that replace those about the file in the data directory. */
export const checkPostgres = async (config: Config & { database_url: string }): Promise<Finding[]> => {
  // Imported lazily, because a single server does not need it.
  const [{ inspectPostgres }, { isStandbyMissing }] = await Promise.all([
    import("#db/pg/inspect.ts"),
    import("#db/pg/lease.ts"),
  ]);
  try {
    const found = await inspectPostgres(config.database_url);
    const server: Finding = { name: "database", status: "ok", detail: `PostgreSQL ${found.server}` };
    return [
      server,
      checkSchema(found),
      ...checkNodes(found),
      checkStandby(found, isStandbyMissing(found.view)),
      checkEncryptionKey(config),
    ];
  } catch (error) {
    return [{ name: "database", status: "wrong", detail: (error as Error).message }, checkEncryptionKey(config)];
  }
};

const checkSchema = ({ schema: current, newest, problem }: PostgresInspection): Finding => {
  const name = "schema";
  if (problem) return { name, status: "wrong", detail: problem };
  if (current < newest)
    return { name, status: "warn", detail: `${newest - current} pending migrations run at the next start` };
  return { name, status: "ok", detail: `${current}, up to date` };
};

const checkNodes = ({ view, parts }: PostgresInspection): Finding[] => {
  if (!view) return [];
  if (parts) return [checkMembers(view.members, parts)];
  const silent = view.nodes.filter(({ silent_ms }) => silent_ms > SILENCE_TIMEOUT_MS).map(({ id }) => id);
  const standbyCount = view.nodes.length - silent.length - (view.active ? 1 : 0);
  const active: Finding = view.active
    ? { name: "active node", status: "ok", detail: `${view.active.id}, ${view.active.version}` }
    : { name: "active node", status: "warn", detail: "no node is active" };
  const detail = [
    `${standbyCount} stand by`,
    ...(silent.length > 0 ? [`no heartbeat from ${silent.join(", ")}`] : []),
  ].join("; ");
  return [active, { name: "spare nodes", status: silent.length > 0 || standbyCount < 1 ? "warn" : "ok", detail }];
};

/** When all nodes are active, none stands by. */
const checkMembers = (living: readonly NodeRow[], parts: Readonly<Record<string, number>>): Finding => {
  const ownedCount = living.reduce((sum, { id }) => sum + (parts[id] ?? 0), 0);
  const lines = living.map(({ id, version }) => `${id}, ${version}, ${parts[id] ?? 0} of ${SHARD_COUNT} parts`);
  if (ownedCount < SHARD_COUNT) lines.push(`${SHARD_COUNT - ownedCount} shards have no node`);
  return {
    name: "active nodes",
    status: living.length < 2 || ownedCount < SHARD_COUNT ? "warn" : "ok",
    detail: lines.join("; "),
  };
};

const checkStandby = ({ view }: PostgresInspection, isMissing: boolean): Finding => {
  const name = "standby database";
  if (!view) return { name, status: "ok", detail: "checked after the first start" };
  const { required, synchronous } = view.standby;
  if (isMissing) return { name, status: "wrong", detail: "none is connected: writes wait until one is" };
  if (synchronous === undefined) {
    return { name, status: "warn", detail: "cannot be seen: grant pg_monitor to the database's user" };
  }
  if (required) return { name, status: "ok", detail: `${synchronous} synchronous` };
  return {
    name,
    status: "warn",
    detail: "none is required: what was acknowledged is lost with the machine of the database",
  };
};

const checkEncryptionKey = ({ encryption_key }: Config): Finding => {
  const name = "encryption key";
  if (encryption_key === undefined) {
    return { name, status: "warn", detail: "from this node's data directory: give encryption_key to all nodes" };
  }
  return { name, status: "ok", detail: "from the settings" };
};
