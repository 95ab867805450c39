// Transfers shards between nodes that are active at the same time (docs/spec/cluster-nodes.md, stage 5). Each operation is a transaction.
import type { ReservedSQL } from "bun";
import type { BoundText } from "../bind.ts";
import { type Renewal, shareLease, UPSERT_HEARTBEAT } from "../lease.ts";
import { toMovesNotification } from "../notices/notice.ts";
import { type Move, planMoves } from "./assignment.ts";
import { inTransaction, raiseEpoch } from "./guard.ts";
import { type OwnerRow, SELECT_OWNERS, type ShardTable, toShardTable } from "./table.ts";

/** An epoch that belongs to no node: a notification with it makes all nodes check. */
const NO_EPOCH = 0;

/** Held while shards are assigned, so that only one node reassigns the shards of a dead node. */
const ASSIGNMENT_LOCK = 5_710_321_978;

/** Returns a builder for the first statement of a group with several active nodes. There is no single newest epoch. */
export const makeShardsGuard =
  (node: string, epoch: number) =>
  (shards: readonly number[]): BoundText => ({
    text: "select own_parts($1, $2, $3::text::bigint[])",
    params: [node, epoch, `{${shards.join(",")}}`],
  });

/**
 * Adds the node to the active ones, without shards, and returns its new epoch. Fences an earlier process of its name, and a former single
 * node. Throws UnsafeDatabaseError while a single node is active.
 */
export const joinShards = (sql: ReservedSQL, node: string, lease_ms: number): Promise<number> =>
  inTransaction(sql, async () => {
    await shareLease(sql, node);
    const value = await raiseEpoch(sql);
    // Leases before fences before parts, the same order as in every takeover.
    await sql.unsafe(
      `insert into leases (node, expires_at) values ($1, clock_timestamp() + $2 * interval '1 ms')
       on conflict (node) do update set expires_at = excluded.expires_at`,
      [node, lease_ms],
    );
    await sql.unsafe(
      "insert into fences (node, epoch) values ($1, $2) on conflict (node) do update set epoch = excluded.epoch",
      [node, value],
    );
    // Removes the fence of a former single node, which has no lease of this kind.
    await sql.unsafe("delete from fences where node not in (select node from leases)");
    await sql.unsafe("update parts set node = '', epoch = 0 where node = $1", [node]);
    // The node counts its changes in this row. All nodes check it before they use a cached answer.
    await sql.unsafe(
      `insert into versions (node, epoch, shown, callers) values ($1, $2, 0, 0)
       on conflict (node) do update set epoch = excluded.epoch`,
      [node, value],
    );
    await notifyMoves(sql, value);
    // Extended last, because the previous steps may have waited.
    await sql.unsafe("update leases set expires_at = clock_timestamp() + $2 * interval '1 ms' where node = $1", [
      node,
      lease_ms,
    ]);
    return value;
  });

/**
 * Renews the lease, records a heartbeat, and reads the ownership, in one query. Returns undefined if the node's shards were reassigned, or
 * another process has its name.
 */
export const renewShards = async (
  sql: ReservedSQL,
  { id, address, version, epoch, lease_ms, sent }: Renewal,
): Promise<ShardTable | undefined> => {
  const rows: (OwnerRow & { readonly renewed: boolean })[] = await sql.unsafe(
    `with renewed as (update leases set expires_at = clock_timestamp() + $5 * interval '1 ms', told = $6::bigint
       where node = $1 and exists (select 1 from fences where fences.node = $1 and fences.epoch = $4::bigint) returning 1),
     shown as (${UPSERT_HEARTBEAT}), owners as (${SELECT_OWNERS}) select *, exists (select 1 from renewed) as renewed from owners order by id`,
    [id, address, version, epoch, lease_ms, sent ?? 0],
  );
  if (!rows[0]?.renewed) return undefined;
  // The rows were read before the renewal.
  return toShardTable(rows.map((row) => (row.id === id ? { ...row, ends_ms: lease_ms } : row)));
};

/** Nodes that get no shards. */
type UnreachableNodes = Pick<ReadonlySet<string>, "has">;

/**
 * Fences every node whose lease has expired, and assigns its shards and ownerless ones to living nodes. Waits for running groups of such a
 * node. Returns the moves.
 */
export const assignOrphanedShards = (
  sql: ReservedSQL,
  lease_ms: number,
  unreachable: UnreachableNodes = new Set(),
): Promise<Move[]> =>
  inTransaction(sql, async () => {
    await sql.unsafe(`select pg_advisory_xact_lock(${ASSIGNMENT_LOCK})`);
    // A concurrent renewal waits and then finds no lease, which ends its node.
    const ended = await sql.unsafe("delete from leases where expires_at <= clock_timestamp() returning node");
    for (const { node } of ended) await fenceNode(sql, node);
    const moves = await assignUnowned(sql, lease_ms, unreachable);
    if (ended.length + moves.length > 0) await notifyMoves(sql, NO_EPOCH);
    return moves;
  });

/**
 * Removes a node: its shards go to living nodes, or become ownerless if none exist. It must have stopped writing. Returns the moves;
 * undefined if other nodes had already taken over from it.
 */
export const removeNodeFromShards = (
  sql: ReservedSQL,
  { node, epoch }: Holder,
  lease_ms: number,
): Promise<Move[] | undefined> =>
  inTransaction(sql, async () => {
    await sql.unsafe(`select pg_advisory_xact_lock(${ASSIGNMENT_LOCK})`);
    const removed = await sql.unsafe(
      "delete from leases where node = $1 and exists (select 1 from fences where fences.node = $1 and epoch = $2) returning 1",
      [node, epoch],
    );
    if (removed.length === 0) return undefined;
    await fenceNode(sql, node);
    const moves = await assignUnowned(sql, lease_ms);
    await sql.unsafe("update parts set node = '', epoch = 0 where node = $1", [node]);
    await notifyMoves(sql, epoch);
    return moves;
  });

/** Makes every node check immediately, because callers wait for the shards. */
const notifyMoves = async (sql: ReservedSQL, epoch: number): Promise<void> => {
  const { text, params } = toMovesNotification(epoch);
  await sql.unsafe(text, params as never[]);
};

/** The owner of a shard: a node in one epoch. */
export type Holder = { readonly node: string; readonly epoch: number };

/** Waits for the node's running group, and rejects every later one. */
const fenceNode = async (sql: ReservedSQL, node: string): Promise<void> => {
  await sql.unsafe("delete from fences where node = $1", [node]);
  await sql.unsafe("delete from versions where node = $1", [node]);
};

/** Assigns shards without a living owner; `unreached` get none. */
const assignUnowned = async (sql: ReservedSQL, lease_ms: number, unreachable?: UnreachableNodes): Promise<Move[]> => {
  const { moves, living } = await computeMoves(sql, lease_ms, unreachable);
  // Living owners hand over their shards themselves.
  const orphanMoves = moves.filter(({ part }) => !living.has(part));
  await storeMoves(sql, orphanMoves);
  return orphanMoves;
};

/** Returns the moves that would balance the shards of all living nodes. Each owner hands over its own. */
export const planBalance = async (sql: ReservedSQL, lease_ms: number): Promise<Move[]> =>
  (await computeMoves(sql, lease_ms)).moves;

const computeMoves = async (
  sql: ReservedSQL,
  lease_ms: number,
  unreachable: UnreachableNodes = new Set(),
): Promise<{ readonly moves: Move[]; readonly living: ReadonlySet<number> }> => {
  const rows: { part: string; node: string; lives: boolean; is_new: boolean }[] = await sql.unsafe(
    `select part, coalesce(f.node, '') as node, f.node is not null as lives, given_at > clock_timestamp() - $1 * interval '1 ms' as is_new
     from parts left join (select node, epoch from fences join leases using (node)) f on f.node = parts.node and f.epoch = parts.epoch
     order by part`,
    [lease_ms],
  );
  const nodes: { node: string }[] = await sql.unsafe("select node from leases where expires_at > clock_timestamp()");
  const moves = planMoves(
    rows.map(({ node, is_new }) => ({ node, isNew: is_new })),
    nodes.map(({ node }) => node).filter((node) => !unreachable.has(node)),
  );
  return { moves, living: new Set(rows.filter(({ lives }) => lives).map(({ part }) => Number(part))) };
};

/** Locks rows in the same order as guards. Waits for a node that is rejoining, so that no shard is assigned to its earlier epoch. */
const UPDATE_OWNERS = `with wanted as materialized (select part, receiver from jsonb_to_recordset($1::text::jsonb) as w (part bigint, receiver text)),
    receivers as materialized (select node, epoch from fences where node in (select receiver from wanted) order by node for share),
    held as materialized (select part from parts where part in (select part from wanted) order by part for no key update)
  update parts set node = receivers.node, epoch = receivers.epoch, given_at = clock_timestamp() from wanted, receivers
  where parts.part = wanted.part and receivers.node = wanted.receiver and parts.part in (select part from held)`;

const formatMoves = (moves: readonly Move[]): string =>
  JSON.stringify(moves.map(({ part, to: receiver }) => ({ part, receiver })));

const storeMoves = (sql: ReservedSQL, moves: readonly Move[]): Promise<unknown> =>
  sql.unsafe(UPDATE_OWNERS, [formatMoves(moves)]);

/**
 * Hands some of the node's shards over to other living nodes, once it has nothing more to write for them. Waits for its running group.
 * Returns the moved shards. Skips shards that it did not own, and those whose receiver no longer exists.
 */
export const transferShards = async (
  sql: ReservedSQL,
  { node, epoch }: Holder,
  moves: readonly Move[],
): Promise<number[]> => {
  const rows: { part: string }[] = await sql.unsafe(
    `${UPDATE_OWNERS} and parts.node = $2 and parts.epoch = $3
       and receivers.node in (select leases.node from leases where expires_at > clock_timestamp()) returning parts.part`,
    [formatMoves(moves), node, epoch],
  );
  // Sent afterwards. A node that misses it notices with its next renewal.
  if (rows.length > 0) await notifyMoves(sql, epoch);
  return rows.map(({ part }) => Number(part));
};

/**
 * Gives the released shards that no other node has received back to this node. They then stay here for a lease period, which every node
 * sees in the table.
 */
export const reclaimShards = async (
  sql: ReservedSQL,
  { node, epoch }: Holder,
  shards: readonly number[],
): Promise<void> => {
  await sql.unsafe(
    `with held as materialized (select part from parts where node = $1 and epoch = $2
         and part in (select value::bigint from jsonb_array_elements_text($3::text::jsonb)) order by part for no key update)
       update parts set given_at = clock_timestamp() where part in (select part from held)`,
    [node, epoch, JSON.stringify(shards)],
  );
};
