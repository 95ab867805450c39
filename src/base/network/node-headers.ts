// Headers that must not be passed on: cluster nodes use some between each other, others instruct a proxy in front of the server, or apply
// to one connection only.

/** Contains the node's token and the client's address. */
export const NODE_HEADER = "x-slipway-node";
/** Contains the shard of a request that another node must handle. */
export const SHARD_HEADER = "x-slipway-part";

/** Removed from responses of apps: a node that sees one in a response would send the request to another node. */
export const NODE_HEADERS: ReadonlySet<string> = new Set([NODE_HEADER, SHARD_HEADER]);

/** Instructions to a proxy in front of this server, with which the proxy could send its own files. */
const PROXY_HEADERS = /^x-(?:accel-|sendfile|lighttpd-send-|litespeed-|reproxy-|backend-redirect$)/;

/** Returns the names in a `Connection` header, which apply to one connection only. */
export const listConnectionHeaders = (connection: string | null): Set<string> =>
  new Set((connection ?? "").split(",").map((name) => name.trim().toLowerCase()));

/** Returns whether this server's nodes, or a proxy in front of it, would follow a response header with this name. */
export const isInstruction = (name: string): boolean => NODE_HEADERS.has(name) || PROXY_HEADERS.test(name);
