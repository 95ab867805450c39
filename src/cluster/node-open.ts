// Opens a connection to another node's listener. Both sides prove that they are nodes.
import type { X509Certificate } from "node:crypto";
import type { Socket } from "bun";
import type { Clock } from "#base/clock.ts";
import { finishesWithin } from "#base/retry.ts";
import { connectToNode, type NodeListener, parseNodeAddress } from "./connect.ts";
import { formatLinkRequest, parseLinkResponse } from "./node-head.ts";

/** Time for the connection and the handshake. */
const OPEN_TIMEOUT_MS = 3_000;

export type LinkOptions = {
  readonly clock: Clock;
  /** The name of this node. */
  readonly id: string;
  readonly token: string;
  /** This node's certificate, if nodes use TLS. */
  readonly certificate: X509Certificate | undefined;
};

/** Opens a link. `begin` is called once it is open, and returns its listener. Returns false when no node responds in time. */
export const openLink = async (
  { clock, id, token, certificate }: LinkOptions,
  address: string,
  begin: (socket: Socket) => NodeListener,
): Promise<boolean> => {
  const node = parseNodeAddress(address);
  if (!node) return false;
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
  let beginning = Buffer.alloc(0);
  let connected: Socket | undefined;
  let listener: NodeListener | undefined;
  let isLate = false;
  const socket = connectToNode(node, certificate, {
    data: (bytes) => {
      if (listener) return listener.data(bytes);
      beginning = Buffer.concat([beginning, bytes]);
      const rest = parseLinkResponse(beginning);
      if (rest === undefined || isLate) return;
      if (rest !== "refused") {
        listener = begin(connected as Socket);
        if (rest.length > 0) listener.data(rest);
      }
      answer();
    },
    drain: () => listener?.drain?.(),
    ended: () => (listener ? listener.ended() : answer()),
    failed: () => (listener ? listener.failed() : answer()),
  });
  const opened = socket.then(async (socket) => {
    connected = socket;
    const head = formatLinkRequest(address, token, id);
    // A head is small: a socket that does not accept it immediately is failing.
    if (socket?.write(head) === head.length) await answered;
  });
  await finishesWithin(clock, OPEN_TIMEOUT_MS, opened);
  if (listener) return true;
  isLate = true;
  void socket.then((late) => late?.terminate());
  return false;
};
