// The handshake of a link between nodes: a request that only a node can make to another node's listener, and the response. Pure.
import { isSameDigest, sha256 } from "#base/ids.ts";
import { NODE_HEADER } from "#base/network/node-headers.ts";
import { MAX_HEAD_BYTES } from "./head.ts";

/** The path at which a node requests a link. It requires the nodes' token. */
export const LINK_PATH = "/.slipway/nodes";
const PROTOCOL = "slipway-nodes";

/** Matches the value of the nodes' header in a link request: the token and the node's name. */
const SENDER = /^(\S{1,200}) node=(\S{1,200})$/;

export const formatLinkRequest = (address: string, token: string, id: string): Buffer =>
  Buffer.from(
    [
      `GET ${LINK_PATH} HTTP/1.1`,
      `host: ${address}`,
      "connection: upgrade",
      `upgrade: ${PROTOCOL}`,
      `${NODE_HEADER}: ${token} node=${encodeURIComponent(id)}`,
      "\r\n",
    ].join("\r\n"),
  );

/** Returns the name of the node that asks for a link, from the nodes' header; undefined for everyone else. */
export const parseLinkSender = (value: string | undefined, digest: string): string | undefined => {
  const [, token, id] = SENDER.exec(value ?? "") ?? [];
  return token !== undefined && id !== undefined && isSameDigest(sha256(token), digest) ? decodeId(id) : undefined;
};

const decodeId = (id: string): string | undefined => {
  try {
    return decodeURIComponent(id);
  } catch {
    return undefined;
  }
};

const SWITCHING_RESPONSE = Buffer.from(
  `HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: ${PROTOCOL}\r\n\r\n`,
);

/** Returns the response that opens a link. */
export const formatLinkResponse = (): Buffer => SWITCHING_RESPONSE;

/** Returns the bytes after the response that opens a link; undefined until the response is complete. */
export const parseLinkResponse = (bytes: Buffer): Buffer | "refused" | undefined => {
  const length = Math.min(bytes.length, SWITCHING_RESPONSE.length);
  if (!bytes.subarray(0, length).equals(SWITCHING_RESPONSE.subarray(0, length)) || bytes.length > MAX_HEAD_BYTES)
    return "refused";
  return bytes.length < SWITCHING_RESPONSE.length ? undefined : bytes.subarray(SWITCHING_RESPONSE.length);
};
