// Ownership of all shards at one moment, according to the database.
import type { ReservedSQL } from "bun";
import { type OtherNode, SHARD_COUNT } from "#base/shards.ts";
import type { SenderHeartbeat } from "../notices/sent-counts.ts";

export type Owner = OtherNode & {
  readonly epoch: number;
  /** Milliseconds until its lease expires, by the database's clock. */
  readonly ends_ms: number;
  readonly lives: boolean;
  /** How many notices it had sent to other nodes as of its last renewal. */
  readonly sender: SenderHeartbeat;
  readonly shards: readonly number[];
};

export type ShardTable = {
  /** Every node whose shards have not been taken over, including those with expired leases. */
  readonly owners: readonly Owner[];
  /** Whether shards of a dead node, or without an owner, must be assigned. */
  readonly isOrphaned: boolean;
};

export type OwnerRow = {
  readonly id: string;
  readonly address: string;
  readonly epoch: string;
  readonly sign: string;
  readonly ends_ms: number;
  readonly sent: string;
  readonly parts: string;
};

/** Selects every node with its lease and its shards. */
export const SELECT_OWNERS = `select f.node as id, coalesce(n.address, f.node) as address, f.epoch, l.expires_at::text as sign, l.told as sent,
    (extract(epoch from l.expires_at - clock_timestamp()) * 1000)::float8 as ends_ms,
    coalesce(string_agg(p.part::text, ',' order by p.part), '') as parts
  from leases l join fences f on f.node = l.node left join nodes n on n.id = l.node
    left join parts p on p.node = f.node and p.epoch = f.epoch
  group by f.node, n.address, f.epoch, l.expires_at, l.told order by f.node`;

export const loadShardTable = async (sql: ReservedSQL): Promise<ShardTable> =>
  toShardTable(await sql.unsafe(SELECT_OWNERS));

export const toShardTable = (rows: readonly OwnerRow[]): ShardTable => {
  const owners = rows.map(({ id, address, ends_ms, parts, ...row }) => {
    const epoch = Number(row.epoch);
    const sender = { epoch, sent: Number(row.sent), sign: row.sign };
    return { id, address, epoch, ends_ms, lives: ends_ms > 0, sender, shards: parseNumbers(parts) };
  });
  const ownedCount = owners.reduce((sum, { shards }) => sum + shards.length, 0);
  return { owners, isOrphaned: ownedCount < SHARD_COUNT || owners.some(({ lives }) => !lives) };
};

const parseNumbers = (parts: string): number[] => (parts === "" ? [] : parts.split(",").map(Number));

/** Returns whether some living node has at least two more shards than another. */
export const isUneven = ({ owners }: ShardTable): boolean => {
  const counts = owners.filter(({ lives }) => lives).map(({ shards }) => shards.length);
  return counts.length > 1 && Math.max(...counts) - Math.min(...counts) > 1;
};

/** Returns the milliseconds until the first of these leases expires, unless renewed. */
export const msUntilNextExpiry = ({ owners }: ShardTable): number =>
  Math.min(...owners.map(({ ends_ms }) => Math.max(1, ends_ms)));
