// A connection from one node to another. Where nodes speak TLS, the other side has to show the certificate of a node.
import type { X509Certificate } from "node:crypto";
import type { Socket } from "bun";
import { log } from "#base/log.ts";
import { isGivenByAuthority, isNode } from "./peer.ts";

/** Called for a node only, and not before it is known to be one. */
export type NodeListener = {
  data(bytes: Buffer): void;
  /** It takes more again. */
  drain?(): void;
  /** It has said all, or the connection is closed. */
  ended(): void;
  /** The connection broke. */
  failed(): void;
};

/** A machine that disappears silently is noticed so long after its last message, and some seconds more. */
export const KEEP_ALIVE_MS = 10_000;

export type NodePlace = { readonly hostname: string; readonly port: number };

/** `own`: the certificate of this node, where nodes speak TLS. Undefined when no node answers there. */
export const connectToNode = async (
  { hostname, port }: NodePlace,
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
    // Looked at below: a node is known by its certificate, not by the name at which it is reached.
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

/** The two parts of host:port; undefined for other texts. An IPv6 host is without its brackets. */
export const parsePlace = (address: string | undefined): NodePlace | undefined => {
  const [, hostname, port] = /^(.*):(\d+)$/.exec(address ?? "") ?? [];
  return hostname === undefined ? undefined : { hostname: hostname.replace(/^\[|\]$/g, ""), port: Number(port) };
};
