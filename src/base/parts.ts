// Which part of a deployment something belongs to. Nodes of a cluster share out parts, never single things, and what is written of a part is
// written by one node (docs/spec/cluster-nodes.md). Pure.

/** How many parts there are. Rows hold numbers of parts, so this never changes. */
export const PARTS = 256;

/**
 * The part of anyone who or whatever an id names: always the same. Stored where a thing is made, and never asked again of what is there: a
 * prebuild changes its owner, and keeps its part. SQL computes the same in the migrations that brought the columns.
 */
export const partOf = (id: string): number => {
  let value = 0;
  for (const character of id) value = (value * 31 + (character.codePointAt(0) ?? 0)) % 65_521;
  return value % PARTS;
};

/** Of this part is the node that does what there is once only, and it alone writes for that. */
export const FIRST_PART = 0;

/** Another node of the cluster: `address` is host:port at which it is reached, `id` its name. */
export type OtherNode = { readonly id: string; readonly address: string };

/** Which parts this node has now. It serves and writes for them until it hands them over. */
export interface Parts {
  has(part: number): boolean;
  /** Part 0, and with it what there is once only: keepers, retention, whatever belongs to no part. */
  readonly isFirst: boolean;
  /** Raised before parts come that another node may have had: what was known of them is old. Absent where none ever do. */
  readonly comings?: number;
  /** The other node that has it; undefined while no node has it, and where this one does. */
  nodeOf(part: number): OtherNode | undefined;
}

/** All other nodes that have parts. */
export const otherNodes = (parts: Parts): OtherNode[] => {
  const nodes = new Map<string, OtherNode>();
  for (let part = 0; part < PARTS; part++) {
    const node = parts.nodeOf(part);
    if (node) nodes.set(node.id, node);
  }
  return [...nodes.values()];
};

/** Where there is one server, or one active node. */
export const ALL_PARTS: Parts = { has: () => true, isFirst: true, comings: 0, nodeOf: () => undefined };

/** For what only reads, alongside the parts that its node may have: it does nothing on its own. */
export const NO_PARTS: Parts = { has: () => false, isFirst: false, comings: 0, nodeOf: () => undefined };

/** Numbers of parts; undefined: all of them, and nothing has to be said of any. */
export type PartNumbers = readonly number[] | undefined;

/** The same, where a list may be all there are. */
export const selectParts = (parts: readonly number[]): PartNumbers => (parts.length === PARTS ? undefined : parts);

/** What this node has now. */
export const ownParts = (parts: Parts): PartNumbers =>
  parts === ALL_PARTS
    ? undefined
    : selectParts(Array.from({ length: PARTS }, (_, part) => part).filter((part) => parts.has(part)));
