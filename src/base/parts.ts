// Assigns everything in a deployment to a part. Cluster nodes distribute parts, never individual resources, and only one node writes to a
// part (docs/spec/cluster-nodes.md). Pure.

/** Number of parts. Rows store part numbers, so this must never change. */
export const PARTS = 256;

/**
 * Returns the part of an ID, which is always the same. It is stored when a resource is created and not recomputed later: a prebuild changes
 * its owner but keeps its part. SQL computes the same in the migrations that added the columns.
 */
export const toPart = (id: string): number => {
  let value = 0;
  for (const character of id) value = (value * 31 + (character.codePointAt(0) ?? 0)) % 65_521;
  return value % PARTS;
};

/** The part of cluster-wide singletons: its node runs them and is the only one that writes for them. */
export const FIRST_PART = 0;

/** Another node of the cluster: `address` is its host:port, `id` its name. */
export type OtherNode = { readonly id: string; readonly address: string };

/** The parts this node owns now. It serves and writes to them until it hands them off. */
export interface Parts {
  has(part: number): boolean;
  /** Part 0, which includes cluster-wide singletons: keepers, retention, and everything that belongs to no part. */
  readonly isFirst: boolean;
  /**
   * Incremented before parts arrive that another node may have owned, which invalidates caches about them. Absent where parts never arrive.
   */
  readonly comings?: number;
  /** Returns the other node that owns a part; undefined when no node owns it, or this one does. */
  nodeOf(part: number): OtherNode | undefined;
}

/** Returns all other nodes that own parts. */
export const listOtherNodes = (parts: Parts): OtherNode[] => {
  const nodes = new Map<string, OtherNode>();
  for (let part = 0; part < PARTS; part++) {
    const node = parts.nodeOf(part);
    if (node) nodes.set(node.id, node);
  }
  return [...nodes.values()];
};

/** For a single server, or a single active node. */
export const ALL_PARTS: Parts = { has: () => true, isFirst: true, comings: 0, nodeOf: () => undefined };

/** For read-only code next to the parts its node may own: it does no background work. */
export const NO_PARTS: Parts = { has: () => false, isFirst: false, comings: 0, nodeOf: () => undefined };

/** Part numbers; undefined means all parts, so queries need no condition. */
export type PartNumbers = readonly number[] | undefined;

/** Converts a list that may contain all parts. */
export const selectParts = (parts: readonly number[]): PartNumbers => (parts.length === PARTS ? undefined : parts);

/** Returns the parts this node owns now. */
export const getOwnParts = (parts: Parts): PartNumbers =>
  parts === ALL_PARTS
    ? undefined
    : selectParts(Array.from({ length: PARTS }, (_, part) => part).filter((part) => parts.has(part)));
