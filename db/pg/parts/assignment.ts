// Which part goes to which node, so that all who live have the same to do and little moves. Pure: the same answer to the same question, so
// it does not matter which node asks.

/** Where a part is. */
export type Held = {
  /** Empty, or a node that lives no more: someone has to take it. */
  readonly node: string;
  /** It was given to its node within the length of a lease: there it stays while its node lives. */
  readonly isNew?: boolean;
};

export type Move = { readonly part: number; readonly to: string };

/**
 * The fewest moves after which nobody who lives has two parts more than another, parts of the dead first. Where parts that are new keep them from
 * that, they go as far as they can; asked again once those have rested, the rest follows. `held`: by the number of the part.
 */
export const planMoves = (held: readonly Held[], living: readonly string[]): Move[] => {
  const nodes = [...new Set(living)].sort();
  if (nodes.length === 0) return [];
  const own = new Map<string, number[]>(nodes.map((node) => [node, []]));
  const free: number[] = [];
  for (const [part, { node }] of held.entries()) (own.get(node) ?? free).push(part);
  const have = new Map(nodes.map((node) => [node, own.get(node)?.length ?? 0]));
  const count = (node: string): number => have.get(node) ?? 0;
  const [least, over] = [Math.floor(held.length / nodes.length), held.length % nodes.length];
  const mustKeepMore = (node: string): boolean =>
    (own.get(node) ?? []).filter((part) => held[part]?.isNew).length > least;
  // Those that are left over stay with anyone who cannot give them up, then with anyone who has more: then the fewest move.
  const byCount = [...nodes].sort(
    (a, b) => Number(mustKeepMore(b)) - Number(mustKeepMore(a)) || count(b) - count(a) || (a < b ? -1 : 1),
  );
  for (const [at, node] of byCount.entries()) {
    const surplus = count(node) - least - (at < over ? 1 : 0);
    const movable = (own.get(node) ?? []).filter((part) => !held[part]?.isNew);
    const given = surplus > 0 ? movable.slice(-surplus) : [];
    free.push(...given);
    have.set(node, count(node) - given.length);
  }
  return free.map((part) => {
    const to = nodes.reduce((least, node) => (count(node) < count(least) ? node : least));
    have.set(to, count(to) + 1);
    return { part, to };
  });
};
