// Headers that cluster nodes use only between each other.

/** Contains the node's token and the client's address. */
export const NODE_HEADER = "x-slipway-node";
/** Contains the shard of a request that another node must handle. */
export const SHARD_HEADER = "x-slipway-part";

/** Removed from what apps send: a request with one would be executed again. */
export const NODE_HEADERS: ReadonlySet<string> = new Set([NODE_HEADER, SHARD_HEADER]);
