// Which node of a cluster is the active one. The lease says who may serve; that an older node writes nothing is the work of the epoch,
// which rises in the same transaction in which the lease changes hands (PERFORMANCE section 3, points 2 and 12).
import type { ReservedSQL } from "bun";
import { inTransaction, takeEverything } from "./parts/guard.ts";

export type NodeRow = {
  readonly id: string;
  /** host:port at which the others reach it. */
  readonly address: string;
  readonly version: string;
  /** Milliseconds since it was last heard of. */
  readonly silent_ms: number;
};

/**
 * How the database stands by for itself. `required`: commits wait for a standby; `synchronous`: how many there are that they may wait
 * for, undefined where the node's user may not see it (it lacks the role pg_monitor).
 */
export type Standby = { readonly required: boolean; readonly synchronous: number | undefined };

export type ClusterView = {
  /** The node that holds the lease; undefined while nobody does. */
  readonly active: NodeRow | undefined;
  readonly nodes: readonly NodeRow[];
  readonly standby: Standby;
};

/** A node that was silent for so long is no longer shown. */
const FORGOTTEN = "1 hour";

/** Notes that the node is alive. */
export const seeNode = async (
  sql: ReservedSQL,
  { id, address, version }: Pick<NodeRow, "id" | "address" | "version">,
): Promise<void> => {
  await sql.unsafe(
    `insert into nodes (id, address, version, seen_at) values ($1, $2, $3, clock_timestamp())
     on conflict (id) do update set address = excluded.address, version = excluded.version, seen_at = excluded.seen_at`,
    [id, address, version],
  );
};

export const viewCluster = async (sql: ReservedSQL): Promise<ClusterView> => {
  const rows = (await sql.unsafe(
    `select n.id, n.address, n.version, (extract(epoch from clock_timestamp() - n.seen_at) * 1000)::float8 as silent_ms,
       coalesce(l.expires_at > clock_timestamp(), false) as active
     from nodes n left join lease l on l.node = n.id
     where n.seen_at > clock_timestamp() - interval '${FORGOTTEN}' order by n.id`,
  )) as (NodeRow & { active: boolean })[];
  const [found] = await sql.unsafe(
    `select current_setting('synchronous_standby_names') <> '' as required, count(*) filter (where state is null)::int as hidden,
       count(*) filter (where sync_state in ('sync', 'quorum') and state = 'streaming')::int as synchronous from pg_stat_replication`,
  );
  const nodes = rows.map(({ id, address, version, silent_ms }) => ({ id, address, version, silent_ms }));
  const active = rows.findIndex((one) => one.active);
  const { required, hidden, synchronous } = found;
  return { active: nodes[active], nodes, standby: { required, synchronous: hidden > 0 ? undefined : synchronous } };
};

/**
 * The epoch of the node from now on; undefined while another holds the lease. Waits for a commit of the node before that is under way,
 * and every later one of it is refused.
 */
export const takeLease = async (sql: ReservedSQL, node: string, ms: number): Promise<number | undefined> => {
  return await inTransaction(sql, async () => {
    // Of two that want it the second waits here, and then looks at what the first has written.
    const [free] = await sql.unsafe(
      `update lease set node = $1 where id = 1 and (node in ('', $1) or expires_at <= clock_timestamp()) returning id`,
      [node],
    );
    if (!free) return undefined;
    const epoch = await takeEverything(sql, node);
    // Last, since taking the rest may have waited.
    await sql.unsafe("update lease set expires_at = clock_timestamp() + $1 * interval '1 ms' where id = 1", [ms]);
    return epoch;
  });
};

/** False: another node has it, or another process of this node's name. */
export const renewLease = async (sql: ReservedSQL, node: string, epoch: number, ms: number): Promise<boolean> => {
  const rows = await sql.unsafe(
    `update lease set expires_at = clock_timestamp() + $3 * interval '1 ms'
     where id = 1 and node = $1 and (select value from epoch where id = 1) = $2 returning id`,
    [node, epoch, ms],
  );
  return rows.length === 1;
};

/** Gives it away at once, so that the next node need not wait for its end. */
export const releaseLease = async (sql: ReservedSQL, node: string, epoch: number): Promise<void> => {
  await sql.unsafe(
    "update lease set node = '', expires_at = '-infinity' where id = 1 and node = $1 and (select value from epoch where id = 1) = $2",
    [node, epoch],
  );
};

/** A node that has left in order is shown no longer. */
export const forgetNode = async (sql: ReservedSQL, node: string): Promise<void> => {
  await sql.unsafe("delete from nodes where id = $1", [node]);
};

/** Whether commits wait for a standby that is not there. */
export const isStandbyMissing = (view: ClusterView | undefined): boolean =>
  view?.standby.required === true && view.standby.synchronous === 0;
