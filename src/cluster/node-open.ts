// Opens a connection to another node's listener on which both sides have proven that they are nodes.
import type { X509Certificate } from "node:crypto";
import type { Socket } from "bun";
import type { Clock } from "#base/clock.ts";
import { finishesWithin } from "#base/retry.ts";
import { connectToNode, type NodeListener, parseNodeAddress } from "./connect.ts";
import { formatLinkRequest, parseLinkResponse } from "./node-head.ts";

/** Connect timeout. */
const OPEN_TIMEOUT_MS = 3_000;

export type LinkOptions = {
  readonly clock: Clock;
  /** The name of this node. */
  readonly id: string;
  readonly token: string;
  /** This node's certificate, if nodes use TLS. */
  readonly certificate: X509Certificate | undefined;
};

/** `begin` is called once the link is open and returns its listener. Returns false when no node responds in time. */
export const openLink = async (
  { clock, id, token, certificate }: LinkOptions,
  address: string,
  begin: (socket: Socket) => NodeListener,
): Promise<boolean> => {
  const node = parseNodeAddress(address);
  if (!node) return false;
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
  let beginning = Buffer.alloc(0);
  let created: Socket | undefined;
  let taker: NodeListener | undefined;
  let isLate = false;
  const socket = connectToNode(node, certificate, {
    data: (bytes) => {
      if (taker) return taker.data(bytes);
      beginning = Buffer.concat([beginning, bytes]);
      const rest = parseLinkResponse(beginning);
      if (rest === undefined || isLate) return;
      if (rest !== "refused") {
        taker = begin(created as Socket);
        if (rest.length > 0) taker.data(rest);
      }
      answer();
    },
    drain: () => taker?.drain?.(),
    ended: () => (taker ? taker.ended() : answer()),
    failed: () => (taker ? taker.failed() : answer()),
  });
  const opened = socket.then(async (one) => {
    created = one;
    const head = formatLinkRequest(address, token, id);
    // A head is small; a socket that does not take it immediately is failing.
    if (one?.write(head) === head.length) await answered;
  });
  await finishesWithin(clock, OPEN_TIMEOUT_MS, opened);
  if (taker) return true;
  isLate = true;
  void socket.then((one) => one?.terminate());
  return false;
};
