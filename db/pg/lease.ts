// Decides which node of a cluster is active. The node that holds the lease may serve. The epoch increases in the transaction that
// transfers the lease, and prevents older nodes from writing.
import type { ReservedSQL } from "bun";
import { UnsafeDatabaseError } from "../engine/unsafe.ts";
import type { SenderHeartbeat } from "./notices/sent-counts.ts";
import { inTransaction, takeAllShards } from "./shards/guard.ts";

export type NodeRow = {
  readonly id: string;
  /** The host:port at which other nodes reach this one. */
  readonly address: string;
  readonly version: string;
  /** Milliseconds since the node's last heartbeat. */
  readonly silent_ms: number;
};

/**
 * The database's own standbys. `required`: commits wait for a standby; `synchronous`: the number of standbys they can wait for, undefined
 * if the node's user may not see it (it lacks the role pg_monitor).
 */
export type Standby = { readonly required: boolean; readonly synchronous: number | undefined };

export type ClusterView = {
  /** The node that holds the lease. Undefined if no node holds it, or if every node is active. */
  readonly active: NodeRow | undefined;
  /** If every node is active (`cluster_active = every`): the living nodes. */
  readonly members: readonly NodeRow[];
  readonly nodes: readonly NodeRow[];
  readonly standby: Standby;
  /** The database's time; milliseconds since 1970. */
  readonly now: number;
};

/** A node and data about the database. The node's columns are null if no node is listed. */
type NodeViewRow = NodeRow & {
  readonly active: boolean;
  readonly member: boolean;
  readonly required: boolean;
  readonly hidden: number;
  readonly synchronous: number;
  readonly now: number;
};

/** A node that is silent for this long is no longer listed. */
const LISTED_FOR = "1 hour";

export type NodeIdentity = Pick<NodeRow, "id" | "address" | "version">;

/** Records a heartbeat; $1 to $3 are the node's ID, address and version. */
export const UPSERT_HEARTBEAT = `insert into nodes (id, address, version, seen_at) values ($1, $2, $3, clock_timestamp())
  on conflict (id) do update set address = excluded.address, version = excluded.version, seen_at = excluded.seen_at`;

/** Records a heartbeat. Returns the active node's count of sent notices, if it reports one. */
export const sendHeartbeat = async (
  sql: ReservedSQL,
  { id, address, version }: NodeIdentity,
): Promise<SenderHeartbeat | undefined> => {
  const [row] = await sql.unsafe(
    `with shown as (${UPSERT_HEARTBEAT}) select told_by as epoch, told as sent, expires_at::text as sign from lease
     where id = 1 and expires_at > clock_timestamp() and told_by = (select value from epoch where id = 1)`,
    [id, address, version],
  );
  return row && { epoch: Number(row.epoch), sent: Number(row.sent), sign: row.sign };
};

/** `isOlder`: the database's version supports only one active node. */
export const loadClusterView = async (sql: ReservedSQL, { isOlder = false } = {}): Promise<ClusterView> => {
  const leases = isOlder ? "(select '' as node, null::timestamptz as expires_at)" : "leases";
  // One round trip, because every heartbeat needs it.
  const found = (await sql.unsafe(
    `with standbys as (select current_setting('synchronous_standby_names') <> '' as required, count(*) filter (where state is null)::int as hidden,
         count(*) filter (where sync_state in ('sync', 'quorum') and state = 'streaming')::int as synchronous,
         (extract(epoch from clock_timestamp()) * 1000)::float8 as now from pg_stat_replication),
       known as (select n.id, n.address, n.version, (extract(epoch from clock_timestamp() - n.seen_at) * 1000)::float8 as silent_ms,
         coalesce(l.expires_at > clock_timestamp(), false) as active, coalesce(m.expires_at > clock_timestamp(), false) as member
       from nodes n left join lease l on l.node = n.id left join ${leases} m on m.node = n.id
       where n.seen_at > clock_timestamp() - interval '${LISTED_FOR}')
     select * from standbys left join known on true order by known.id`,
  )) as [NodeViewRow, ...NodeViewRow[]];
  const rows = found.filter(({ id }) => id !== null);
  const nodes = rows.map(({ id, address, version, silent_ms }) => ({ id, address, version, silent_ms }));
  const active = rows.findIndex((one) => one.active);
  const members = nodes.filter((_, index) => rows[index]?.member);
  const [{ required, hidden, synchronous, now }] = found;
  return {
    active: nodes[active],
    members,
    nodes,
    standby: { required, synchronous: hidden > 0 ? undefined : synchronous },
    now,
  };
};

/**
 * The name that holds the lease while every node is active. It keeps any single node from taking the lease, even a node whose version
 * supports only one active node.
 */
export const ALL_NODES = "*";

/**
 * Locks the lease until the end of the transaction. Other nodes that take the lease wait for the lock, and then read the committed state.
 */
const lockLease = (sql: ReservedSQL): Promise<unknown> => sql.unsafe("select 1 from lease where id = 1 for update");

/** Gives the lease to all nodes. Part of a transaction. Throws UnsafeDatabaseError while another node holds it alone. */
export const shareLease = async (sql: ReservedSQL, node: string): Promise<void> => {
  await lockLease(sql);
  const [{ holder, held }] = await sql.unsafe(
    "select node as holder, expires_at > clock_timestamp() as held from lease where id = 1",
  );
  if (held && ![ALL_NODES, node].includes(holder)) {
    throw new UnsafeDatabaseError(
      `cluster_active is every here, but node ${holder} works on this database with cluster_active = one. Set it to one here, or stop that node first`,
    );
  }
  await sql.unsafe("update lease set node = $1, expires_at = 'infinity' where id = 1", [ALL_NODES]);
};

/** Throws UnsafeDatabaseError if other nodes are active. */
export const requireAlone = ({ members }: ClusterView): void => {
  if (members.length === 0) return;
  const names = members.map(({ id }) => id).join(", ");
  throw new UnsafeDatabaseError(
    `cluster_active is one here, but nodes work on this database with cluster_active = every (${names}). Set it to every here, or stop them first`,
  );
};

/** Returns whether any node is active, alone or with others. */
export const isInUse = async (sql: ReservedSQL): Promise<boolean> => {
  const [{ used }] = await sql.unsafe(
    `select exists (select 1 from lease where node <> $1 and expires_at > clock_timestamp())
       or exists (select 1 from leases where expires_at > clock_timestamp()) as used`,
    [ALL_NODES],
  );
  return used;
};

/**
 * Returns the node's new epoch, or undefined while another node holds the lease. Waits for a running commit of the previous node; all
 * later commits of that node are rejected.
 */
export const acquireLease = async (sql: ReservedSQL, node: string, ms: number): Promise<number | undefined> => {
  return await inTransaction(sql, async () => {
    // If two nodes try, the second one waits here and then sees the result of the first.
    await lockLease(sql);
    const [acquired] = await sql.unsafe(
      `update lease set node = $1 where id = 1 and (node in ('', $1) or expires_at <= clock_timestamp()
         or (node = $2 and not exists (select 1 from leases where expires_at > clock_timestamp()))) returning id`,
      [node, ALL_NODES],
    );
    if (!acquired) return undefined;
    const epoch = await takeAllShards(sql, node);
    // Extended last, because the previous steps may have waited.
    await sql.unsafe("update lease set expires_at = clock_timestamp() + $1 * interval '1 ms' where id = 1", [ms]);
    return epoch;
  });
};

/** A node's heartbeat data for renewing its lease. */
export type Renewal = NodeIdentity & {
  readonly epoch: number;
  readonly lease_ms: number;
  /** How many notices it has sent; undefined if it sends none. */
  readonly sent: number | undefined;
};

/** Renews the lease and records a heartbeat. Returns false if another node has it, or another process with this node's name. */
export const renewLease = async (
  sql: ReservedSQL,
  { id, address, version, epoch, lease_ms, sent }: Renewal,
): Promise<boolean> => {
  const [{ renewed }] = await sql.unsafe(
    `with renewed as (update lease set expires_at = clock_timestamp() + $5 * interval '1 ms', told = coalesce($6::bigint, 0),
         told_by = case when $6::bigint is null then null else $4::bigint end
       where id = 1 and node = $1 and (select value from epoch where id = 1) = $4::bigint returning id),
     shown as (${UPSERT_HEARTBEAT} returning id) select exists (select 1 from renewed) as renewed from shown`,
    [id, address, version, epoch, lease_ms, sent ?? null],
  );
  return renewed;
};

/** Releases the lease immediately, so that the next node need not wait for it to expire. */
export const releaseLease = async (sql: ReservedSQL, node: string, epoch: number): Promise<void> => {
  await sql.unsafe(
    "update lease set node = '', expires_at = '-infinity' where id = 1 and node = $1 and (select value from epoch where id = 1) = $2",
    [node, epoch],
  );
};

/** Removes a node that has left the cluster in a graceful shutdown from the list. */
export const removeNode = async (sql: ReservedSQL, node: string): Promise<void> => {
  await sql.unsafe("delete from nodes where id = $1", [node]);
};

/** Returns whether commits wait for a missing standby. */
export const isStandbyMissing = (view: ClusterView | undefined): boolean =>
  view?.standby.required === true && view.standby.synchronous === 0;
