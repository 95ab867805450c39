// Determines the readiness of a standby node, which is that of the active node.
import type { X509Certificate } from "node:crypto";
import type { Clock } from "#base/clock.ts";
import { NODE_HEADER } from "#base/network/node-headers.ts";
import { finishesWithin } from "#base/retry.ts";
import { connectToNode, type NodeAddress, parseNodeAddress } from "./connect.ts";
import { formatReadinessHeader } from "./forwarded-header.ts";

const ANSWER_TIMEOUT_MS = 2_000;
const MAX_BYTES = 64 * 1024;

export type Readiness = { readonly isReady: boolean; readonly message: string };

export type ReadinessRequest = {
  readonly clock: Clock;
  /** The nodes' token. */
  readonly token: string;
  /** host:port of the active node; undefined while none exists. */
  readonly active: string | undefined;
  /** This node's certificate, if nodes use TLS. */
  readonly certificate: X509Certificate | undefined;
  /** The host of the client's request. The active node answers only requests for its own hosts. */
  readonly host: string;
};

/** Asks the active node for its readiness, in the way that requests are forwarded to it. */
export const findStandbyReadiness = async ({
  clock,
  token,
  active,
  certificate,
  host,
}: ReadinessRequest): Promise<Readiness> => {
  const node = parseNodeAddress(active);
  if (!node) return { isReady: false, message: "No node of the cluster is active." };
  const request = requestReadiness(node, certificate, host, token);
  if (!(await finishesWithin(clock, ANSWER_TIMEOUT_MS, request.response))) request.giveUp();
  const { status, message } = parseResponse(await request.response);
  if (status === undefined) return { isReady: false, message: "The active node does not answer this one." };
  return status === 200
    ? { isReady: true, message: "Ready: this node forwards to the active one." }
    : { isReady: false, message: `The active node is not ready: ${message}` };
};

/** Requests `GET /readyz` from the active node. The raw response is empty if none arrives. */
const requestReadiness = (node: NodeAddress, certificate: X509Certificate | undefined, host: string, token: string) => {
  const { promise: response, resolve } = Promise.withResolvers<string>();
  let text = "";
  let isOver = false;
  const end = (): void => {
    isOver = true;
    resolve(text);
  };
  const connected = connectToNode(node, certificate, {
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
    // A standby node answers this request with "not active", so two standby nodes that assume the other is active do not wait for each
    // other.
    socket.write(
      `GET /readyz HTTP/1.1\r\nhost: ${host}\r\n${NODE_HEADER}: ${formatReadinessHeader(token)}\r\nconnection: close\r\n\r\n`,
    );
    void response.then(() => socket.end());
  });
  return { response, giveUp: end };
};

const parseResponse = (text: string): { status: number | undefined; message: string } => {
  const status = /^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1];
  const message = /"message":"([^"\\]{1,300})"/.exec(text)?.[1] ?? "it gives no reason.";
  return { status: status === undefined ? undefined : Number(status), message };
};
