// Answers a read-only request on this node first, where it serves reads. If it needs the active node, it says so with one status, and the
// active node is asked; otherwise its response is forwarded from the first byte.
import type { X509Certificate } from "node:crypto";
import type { Socket } from "bun";
import type { Clock } from "#base/clock.ts";
import { MISDIRECTED } from "#base/network/local-reads.ts";
import { finishesWithin } from "#base/retry.ts";
import { connectToNode, type NodeAddress, type NodeListener } from "./connect.ts";

const BEGINNING = Buffer.from(`HTTP/1.1 ${MISDIRECTED} `);
/** Interval of the check whether a response that has not started may still come. */
const CHECK_INTERVAL_MS = 500;

export type LocalReadOptions = {
  readonly clock: Clock;
  /** Returns where this node serves reads; undefined while it serves none. */
  findNode(): NodeAddress | undefined;
  /** This node's certificate, if nodes use TLS. */
  readonly certificate: X509Certificate | undefined;
};

/** `begun`: this node responds, and the rest arrives on this connection. */
export type LocalReadListener = NodeListener & { begun(socket: Socket): void };

/** Returns true when this node responds; false means that the listener received nothing and another node must be asked. */
export const answerLocally = async (
  { clock, findNode, certificate }: LocalReadOptions,
  request: Buffer,
  listener: LocalReadListener,
): Promise<boolean> => {
  const at = findNode();
  if (!at) return false;
  const { promise: decided, resolve } = Promise.withResolvers<void>();
  let isHere: boolean | undefined;
  let beginning = Buffer.alloc(0);
  const decide = (answers: boolean): void => {
    isHere ??= answers;
    resolve();
  };
  const socket = await connectToNode(at, certificate, {
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
  // A head is small; a socket that does not take it immediately is failing.
  if (socket.write(request) < request.length) decide(false);
  while (!(await finishesWithin(clock, CHECK_INTERVAL_MS, decided))) if (!findNode()) decide(false);
  if (!isHere) socket.end();
  return isHere === true;
};
