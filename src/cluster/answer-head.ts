// The beginning of what a node answers to a spare: a node that is not the active one, or not any more, says so before it has begun anything,
// and the spare asks the next one. Pure.

import { NODE_HEADER, PART_HEADER } from "#base/network/node-headers.ts";
import { MAX_HEAD_BYTES, plainAnswer } from "./head.ts";
import { NOT_ACTIVE, toPassMark } from "./passed-on.ts";

const STATUS = Buffer.from("HTTP/1.1 503 ");
const END = Buffer.from("\r\n\r\n");

/** `stream`: it continues until someone ends it. `elsewhere`: nothing was begun, another node is to be asked. */
export type Answer = "answer" | "stream" | "elsewhere";

/** Undefined while that is unknown. What is behind a node, such as an application, does not know the sign of the nodes and cannot say so. */
export const readAnswer = (bytes: Buffer, token: string): Answer | undefined => {
  const end = bytes.indexOf(END);
  if (!bytes.subarray(0, STATUS.length).equals(STATUS.subarray(0, bytes.length))) {
    const head = bytes.subarray(0, end < 0 ? bytes.length : end).toString("latin1");
    return /\r\ncontent-type: *text\/event-stream/i.test(head) ? "stream" : "answer";
  }
  if (end < 0) return bytes.length > MAX_HEAD_BYTES ? "answer" : undefined;
  const lines = bytes.subarray(0, end).toString("latin1").split("\r\n");
  return lines.some((line) => line.toLowerCase() === `${NODE_HEADER}: ${toPassMark(token)}`) ? "elsewhere" : "answer";
};

/** The part that an answer of this kind names: anyone who has it is to be asked. */
export const partNamedIn = (bytes: Buffer): number | undefined => {
  const [, part] = new RegExp(`\\r\\n${PART_HEADER}: (\\d{1,3})\\r\\n`, "i").exec(bytes.toString("latin1")) ?? [];
  return part === undefined ? undefined : Number(part);
};

/** What a node answers to one that takes it for the active one, or for the one that has this part. */
export const elsewhereAnswer = (token: string, part?: number): Buffer =>
  plainAnswer("503 Service Unavailable", { message: NOT_ACTIVE }, [
    `${NODE_HEADER}: ${toPassMark(token)}`,
    ...(part === undefined ? [] : [`${PART_HEADER}: ${part}`]),
  ]);
