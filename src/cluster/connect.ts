// Connects one node to another. With TLS, the peer must present the certificate of a node.
import type { X509Certificate } from "node:crypto";
import type { Socket } from "bun";
import { log } from "#base/log.ts";
import { isGivenByAuthority, isNode } from "./peer.ts";

/** Called only once the peer is known to be a node. */
export type NodeListener = {
  data(bytes: Buffer): void;
  /** Called when the socket can take more. */
  drain?(): void;
  /** Called when the peer has sent everything, or the connection is closed. */
  ended(): void;
  /** Called when the connection has failed. */
  failed(): void;
};

/** A machine that disappears silently is noticed this long after its last message, plus a few seconds. */
export const KEEP_ALIVE_MS = 10_000;

export type NodeAddress = { readonly hostname: string; readonly port: number };

/** `own`: this node's certificate, if nodes use TLS. Returns undefined when no node responds there. */
export const connectToNode = async (
  { hostname, port }: NodeAddress,
  own: X509Certificate | undefined,
  listener: NodeListener,
): Promise<Socket | undefined> => {
  const { promise: known, resolve: tell } = Promise.withResolvers<boolean>();
  if (!own) tell(true);
  let isNodes = own === undefined;
  const socket = await Bun.connect({
    hostname,
    port,
    allowHalfOpen: true,
    // Checked below: a node is identified by its certificate, not by the address it is reached at.
    ...(own ? { tls: { rejectUnauthorized: false } } : {}),
    socket: {
      handshake: (node, _, problem) => {
        isNodes = own !== undefined && isNode(node.getPeerX509Certificate(), isGivenByAuthority(problem), own);
        tell(isNodes);
      },
      data: (_, bytes) => listener.data(bytes),
      drain: () => listener.drain?.(),
      end: () => {
        if (isNodes) listener.ended();
      },
      close: () => {
        tell(false);
        if (isNodes) listener.ended();
      },
      error: () => {
        tell(false);
        if (isNodes) listener.failed();
      },
    },
  }).catch(() => undefined);
  socket?.setKeepAlive(true, KEEP_ALIVE_MS);
  if (!socket || (await known)) return socket;
  socket.end();
  log("cluster").warn("who answers at {hostname} port {port} has not the certificate of a node", { hostname, port });
  return undefined;
};

/** Splits host:port; undefined for other text. An IPv6 host is returned without brackets. */
export const parseNodeAddress = (address: string | undefined): NodeAddress | undefined => {
  const [, hostname, port] = /^(.*):(\d+)$/.exec(address ?? "") ?? [];
  return hostname === undefined ? undefined : { hostname: hostname.replace(/^\[|\]$/g, ""), port: Number(port) };
};
