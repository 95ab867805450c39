// Assigns shards to nodes, so that all living nodes have equally many and few shards move. Pure: the result does not depend on which node
// computes it.

/** The node of a shard. */
export type HeldShard = {
  /** The owner. If it is empty or a dead node, the shard must be assigned. */
  readonly node: string;
  /** The shard was assigned within the last lease period, so it stays while its node lives. */
  readonly isNew?: boolean;
};

export type Move = { readonly part: number; readonly to: string };

/**
 * Returns the fewest moves after which no living node has two more shards than another; shards of dead nodes come first. If new shards
 * prevent that, balances as far as possible; a later call completes it. `held`: by shard number.
 */
export const planMoves = (held: readonly HeldShard[], living: readonly string[]): Move[] => {
  const nodes = [...new Set(living)].sort();
  if (nodes.length === 0) return [];
  const shardsByNode = new Map<string, number[]>(nodes.map((node) => [node, []]));
  const free: number[] = [];
  for (const [part, { node }] of held.entries()) (shardsByNode.get(node) ?? free).push(part);
  const counts = new Map(nodes.map((node) => [node, shardsByNode.get(node)?.length ?? 0]));
  const count = (node: string): number => counts.get(node) ?? 0;
  const [base, remainder] = [Math.floor(held.length / nodes.length), held.length % nodes.length];
  const hasExcessNew = (node: string): boolean =>
    (shardsByNode.get(node) ?? []).filter((shard) => held[shard]?.isNew).length > base;
  // If the shards cannot be divided evenly, nodes whose shards cannot move get one more, and then the nodes with the most shards. This
  // minimizes moves.
  const byCount = [...nodes].sort(
    (a, b) => Number(hasExcessNew(b)) - Number(hasExcessNew(a)) || count(b) - count(a) || (a < b ? -1 : 1),
  );
  for (const [index, node] of byCount.entries()) {
    const surplus = count(node) - base - (index < remainder ? 1 : 0);
    const movable = (shardsByNode.get(node) ?? []).filter((shard) => !held[shard]?.isNew);
    const givenAway = surplus > 0 ? movable.slice(-surplus) : [];
    free.push(...givenAway);
    counts.set(node, count(node) - givenAway.length);
  }
  return free.map((shard) => {
    const to = nodes.reduce((least, node) => (count(node) < count(least) ? node : least));
    counts.set(to, count(to) + 1);
    return { part: shard, to };
  });
};
