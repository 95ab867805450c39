// Which part of a deployment something belongs to. Nodes of a cluster share out parts, never single things, and what is written of a part is
// written by one node (docs/cluster-nodes.md). Pure.

/** How many parts there are. Rows hold numbers of parts, so this never changes. */
export const PARTS = 256;

/**
 * The part of whoever or whatever an id names: always the same. Stored where a thing is made, and never asked again of what is there: a
 * prebuild changes its owner, and keeps its part. SQL computes the same in the migrations that brought the columns.
 */
export const partOf = (id: string): number => {
  let value = 0;
  for (const character of id) value = (value * 31 + (character.codePointAt(0) ?? 0)) % 65_521;
  return value % PARTS;
};
