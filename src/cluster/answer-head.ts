// Parses the beginning of a node's response to a standby node. A node that is not active declines before it starts anything, and the
// standby node asks the next node. Pure.

import { NODE_HEADER, SHARD_HEADER } from "#base/network/node-headers.ts";
import { NOT_ACTIVE_MESSAGE, toDeclineMark } from "./forwarded-header.ts";
import { MAX_HEAD_BYTES, toPlainResponse } from "./head.ts";

const STATUS = Buffer.from("HTTP/1.1 503 ");
const END = Buffer.from("\r\n\r\n");

/**
 * `answer`: the node responds. `stream`: the node responds with an event stream, which continues until either side ends it. `elsewhere`:
 * the node has started nothing; another node must be asked.
 */
export type Answer = "answer" | "stream" | "elsewhere";

/**
 * Classifies a response; undefined while too little of it has arrived. Programs behind a node, such as apps, do not know the nodes' secret
 * mark, so they cannot forge `elsewhere`.
 */
export const readAnswer = (bytes: Buffer, token: string): Answer | undefined => {
  const end = bytes.indexOf(END);
  if (!bytes.subarray(0, STATUS.length).equals(STATUS.subarray(0, bytes.length))) {
    const head = bytes.subarray(0, end < 0 ? bytes.length : end).toString("latin1");
    return /\r\ncontent-type: *text\/event-stream/i.test(head) ? "stream" : "answer";
  }
  if (end < 0) return bytes.length > MAX_HEAD_BYTES ? "answer" : undefined;
  const lines = bytes.subarray(0, end).toString("latin1").split("\r\n");
  return lines.some((line) => line.toLowerCase() === `${NODE_HEADER}: ${toDeclineMark(token)}`)
    ? "elsewhere"
    : "answer";
};

/** Returns the shard that an `elsewhere` response names, whose owner must be asked; undefined if it names none. */
export const parseNamedShard = (bytes: Buffer): number | undefined => {
  const [, part] = new RegExp(`\\r\\n${SHARD_HEADER}: (\\d{1,3})\\r\\n`, "i").exec(bytes.toString("latin1")) ?? [];
  return part === undefined ? undefined : Number(part);
};

/** Returns the response to a node that wrongly assumes that this one is active or owns the shard. */
export const formatDecline = (token: string, shard?: number): Buffer =>
  toPlainResponse("503 Service Unavailable", { message: NOT_ACTIVE_MESSAGE }, [
    `${NODE_HEADER}: ${toDeclineMark(token)}`,
    ...(shard === undefined ? [] : [`${SHARD_HEADER}: ${shard}`]),
  ]);
