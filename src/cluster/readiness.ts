// Whether a spare serves anyone who comes to it: it asks the active node whether that is ready, as it would pass on a request.
import type { X509Certificate } from "node:crypto";
import type { Clock } from "#base/clock.ts";
import { NODE_HEADER } from "#base/network/node-headers.ts";
import { within } from "#base/retry.ts";
import { connectToNode, type NodePlace, parsePlace } from "./connect.ts";
import { askedByNode } from "./passed-on.ts";

const ANSWER_MS = 2_000;
const MAX_BYTES = 64 * 1024;

export type Readiness = { readonly isReady: boolean; readonly message: string };

export type Asked = {
  readonly clock: Clock;
  /** That of the nodes. */
  readonly token: string;
  /** host:port of the active node; undefined while none exists. */
  readonly active: string | undefined;
  /** Of this node, where nodes speak TLS. */
  readonly certificate: X509Certificate | undefined;
  /** The name at which this node was asked: the active one answers to its own names only. */
  readonly host: string;
};

export const readinessOfSpare = async ({ clock, token, active, certificate, host }: Asked): Promise<Readiness> => {
  const place = parsePlace(active);
  if (!place) return { isReady: false, message: "No node of the cluster is active." };
  const answer = ask(place, certificate, host, token);
  if (!(await within(clock, ANSWER_MS, answer.said))) answer.giveUp();
  const { status, message } = readAnswer(await answer.said);
  if (status === undefined) return { isReady: false, message: "The active node does not answer this one." };
  return status === 200
    ? { isReady: true, message: "Ready: this node passes on to the active one." }
    : { isReady: false, message: `The active node is not ready: ${message}` };
};

/** What the active node says to `GET /readyz`, as it comes over the connection; empty where it says nothing. */
const ask = (place: NodePlace, certificate: X509Certificate | undefined, host: string, token: string) => {
  const { promise: said, resolve } = Promise.withResolvers<string>();
  let text = "";
  let isOver = false;
  const end = (): void => {
    isOver = true;
    resolve(text);
  };
  const connected = connectToNode(place, certificate, {
    data: (bytes) => {
      text += bytes.toString("latin1");
      if (text.length > MAX_BYTES) end();
    },
    ended: end,
    failed: end,
  });
  void connected.then((socket) => {
    if (!socket || isOver) {
      socket?.end();
      end();
      return;
    }
    // A spare that is asked in this way answers that it is not the active one: of two that take each other for it none waits.
    socket.write(
      `GET /readyz HTTP/1.1\r\nhost: ${host}\r\n${NODE_HEADER}: ${askedByNode(token)}\r\nconnection: close\r\n\r\n`,
    );
    void said.then(() => socket.end());
  });
  return { said, giveUp: end };
};

const readAnswer = (text: string): { status: number | undefined; message: string } => {
  const status = /^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1];
  const message = /"message":"([^"\\]{1,300})"/.exec(text)?.[1] ?? "it gives no reason.";
  return { status: status === undefined ? undefined : Number(status), message };
};
