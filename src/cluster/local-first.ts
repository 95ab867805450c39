// Answers a read-only request from the read server of this node. If the request needs the active node, the read server responds with one
// particular status, and the active node is asked. Any other response is forwarded from its first byte.
import type { X509Certificate } from "node:crypto";
import type { Socket } from "bun";
import type { Clock } from "#base/clock.ts";
import { MISDIRECTED } from "#base/network/local-reads.ts";
import { finishesWithin } from "#base/retry.ts";
import { connectToNode, type NodeAddress, type NodeListener } from "./connect.ts";

const BEGINNING = Buffer.from(`HTTP/1.1 ${MISDIRECTED} `);
/** How often the wait for a response checks whether this node still serves reads. */
const CHECK_INTERVAL_MS = 500;

export type LocalReadOptions = {
  readonly clock: Clock;
  /** Returns the address at which this node serves reads; undefined while it serves none. */
  findNode(): NodeAddress | undefined;
  /** This node's certificate, if nodes use TLS. */
  readonly certificate: X509Certificate | undefined;
};

/** `begun` is called when this node responds; `data` gets the response. */
export type LocalReadListener = NodeListener & { begun(socket: Socket): void };

/** Returns true when this node responds; false when the listener received nothing and another node must be asked. */
export const answerLocally = async (
  { clock, findNode, certificate }: LocalReadOptions,
  request: Buffer,
  listener: LocalReadListener,
): Promise<boolean> => {
  const readServer = findNode();
  if (!readServer) return false;
  const { promise: decided, resolve } = Promise.withResolvers<void>();
  /** Whether this node answers; undefined until it is known. */
  let isHere: boolean | undefined;
  let beginning = Buffer.alloc(0);
  const decide = (isAnsweredHere: boolean): void => {
    isHere ??= isAnsweredHere;
    resolve();
  };
  const socket = await connectToNode(readServer, certificate, {
    data: (bytes) => {
      if (isHere !== undefined) {
        if (isHere) listener.data(bytes);
        return;
      }
      beginning = Buffer.concat([beginning, bytes]);
      if (beginning.length < BEGINNING.length) return;
      decide(!beginning.subarray(0, BEGINNING.length).equals(BEGINNING));
      if (!isHere) return;
      listener.begun(socket as Socket);
      listener.data(beginning);
    },
    drain: () => isHere && listener.drain?.(),
    ended: () => (isHere ? listener.ended() : decide(false)),
    failed: () => (isHere ? listener.failed() : decide(false)),
  });
  if (!socket) return false;
  // A request without a body is small: a socket that does not accept it immediately is failing.
  if (socket.write(request) < request.length) decide(false);
  while (!(await finishesWithin(clock, CHECK_INTERVAL_MS, decided))) if (!findNode()) decide(false);
  if (!isHere) socket.end();
  return isHere === true;
};
