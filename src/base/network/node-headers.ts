// What nodes of a cluster say to each other in requests and responses, and only to each other.

/** Names the node's token and the address of the client. */
export const NODE_HEADER = "x-slipway-node";
/** Names the part of a request that another node has to answer. */
export const PART_HEADER = "x-slipway-part";
