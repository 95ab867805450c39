// Assigns everything in a deployment to a shard. Cluster nodes distribute shards, never individual resources, and only one node writes to a
// shard (docs/spec/cluster-nodes.md). Pure.

/** Number of shards. Rows store shard numbers, so this must never change. */
export const SHARD_COUNT = 256;

/**
 * Returns the shard of an ID, which is always the same. It is stored when a resource is created and not recomputed later: a prebuild changes
 * its owner but keeps its shard. The migrations that added the columns compute the same number in SQL.
 */
export const toShard = (id: string): number => {
  let value = 0;
  for (const character of id) value = (value * 31 + (character.codePointAt(0) ?? 0)) % 65_521;
  return value % SHARD_COUNT;
};

/** The shard of cluster-wide singletons. The node that owns this shard runs them, and only that node writes their rows. */
export const FIRST_SHARD = 0;

/** Another node of the cluster: `address` is its host:port, `id` its name. */
export type OtherNode = { readonly id: string; readonly address: string };

/** The shards this node owns now. It serves and writes to them until it hands them off. */
export interface Shards {
  has(shard: number): boolean;
  /** Shard 0, which includes cluster-wide singletons: keepers, retention, and everything that belongs to no shard. */
  readonly isFirst: boolean;
  /**
   * Incremented before this node gets shards that another node may have owned, which invalidates caches about them. Absent if that never
   * happens.
   */
  readonly arrivals?: number;
  /** Returns the other node that owns a shard; undefined when no node owns it, or this one does. */
  nodeOf(shard: number): OtherNode | undefined;
}

/** Returns all other nodes that own shards. */
export const listOtherNodes = (shards: Shards): OtherNode[] => {
  const nodes = new Map<string, OtherNode>();
  for (let shard = 0; shard < SHARD_COUNT; shard++) {
    const node = shards.nodeOf(shard);
    if (node) nodes.set(node.id, node);
  }
  return [...nodes.values()];
};

/** For a single server, or a single active node. */
export const ALL_SHARDS: Shards = { has: () => true, isFirst: true, arrivals: 0, nodeOf: () => undefined };

/** For code that only reads and does no background work, whatever shards its node owns. */
export const NO_SHARDS: Shards = { has: () => false, isFirst: false, arrivals: 0, nodeOf: () => undefined };
