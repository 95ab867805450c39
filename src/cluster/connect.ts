// Connects one node to another. With TLS, the peer must present the certificate of a node.
import type { X509Certificate } from "node:crypto";
import type { Socket } from "bun";
import { log } from "#base/log.ts";
import { isIssuedByAuthority, isNode } from "./peer.ts";

/** Handles the events of a connection to a node. No method is called before the peer has proven that it is a node. */
export type NodeListener = {
  data(bytes: Buffer): void;
  /** Called when the socket can take more. */
  drain?(): void;
  /** Called when the peer has sent everything, or the connection is closed. */
  ended(): void;
  /** Called when the connection has failed. */
  failed(): void;
};

/** TCP keep-alive: a machine that disappears silently is detected this long after its last packet, plus a few seconds. */
export const KEEP_ALIVE_MS = 10_000;

export type NodeAddress = { readonly hostname: string; readonly port: number };

/** Connects to a node; undefined when none responds at the address. `own`: this node's certificate, if nodes use TLS. */
export const connectToNode = async (
  { hostname, port }: NodeAddress,
  own: X509Certificate | undefined,
  listener: NodeListener,
): Promise<Socket | undefined> => {
  const { promise: verified, resolve: setVerified } = Promise.withResolvers<boolean>();
  if (!own) setVerified(true);
  let isVerified = own === undefined;
  const socket = await Bun.connect({
    hostname,
    port,
    allowHalfOpen: true,
    // The handshake handler checks the certificate: it identifies a node, and the node's address need not be in it.
    ...(own ? { tls: { rejectUnauthorized: false } } : {}),
    socket: {
      handshake: (node, _, problem) => {
        isVerified = own !== undefined && isNode(node.getPeerX509Certificate(), isIssuedByAuthority(problem), own);
        setVerified(isVerified);
      },
      data: (_, bytes) => listener.data(bytes),
      drain: () => listener.drain?.(),
      end: () => {
        if (isVerified) listener.ended();
      },
      close: () => {
        setVerified(false);
        if (isVerified) listener.ended();
      },
      error: () => {
        setVerified(false);
        if (isVerified) listener.failed();
      },
    },
  }).catch(() => undefined);
  socket?.setKeepAlive(true, KEEP_ALIVE_MS);
  if (!socket || (await verified)) return socket;
  socket.end();
  log("cluster").warn("who answers at {hostname} port {port} has not the certificate of a node", { hostname, port });
  return undefined;
};

/** Splits host:port; undefined for other text. An IPv6 host is returned without brackets. */
export const parseNodeAddress = (address: string | undefined): NodeAddress | undefined => {
  const [, hostname, port] = /^(.*):(\d+)$/.exec(address ?? "") ?? [];
  return hostname === undefined ? undefined : { hostname: hostname.replace(/^\[|\]$/g, ""), port: Number(port) };
};
