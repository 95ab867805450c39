// Formats and verifies the header that a standby node adds to forwarded requests.
import type { Clock } from "#base/clock.ts";
import type { Encryption } from "#base/encryption.ts";
import { isSameDigest, sha256 } from "#base/ids.ts";
import { NODE_HEADER, SHARD_HEADER } from "#base/network/node-headers.ts";
import { finishesWithin } from "#base/retry.ts";

/** Returns the token that proves to the active node that a node of its cluster forwarded the request and named the client's address. */
export const deriveNodeToken = (encryption: Encryption): string => encryption.deriveUuid("cluster node");

/** Returns the client address in a header value whose token has this digest; undefined for any other value. Compares in constant time. */
export const parseForwardedAddress = (value: string | null, digest: string): string | undefined => {
  const [, token, address] = /^(\S{1,200}) ([\da-fA-F:.]{2,45})$/.exec(value ?? "") ?? [];
  return token !== undefined && isSameDigest(sha256(token), digest) ? address : undefined;
};

/** Returns the header value of a node that asks for another node's own readiness. */
export const formatReadinessHeader = (token: string): string => `${token} readyz`;

/** Returns whether the header value is that of a node that asks for this node's own readiness. */
export const isReadinessRequest = (value: string | undefined, digest: string): boolean => {
  const [, token] = /^(\S{1,200}) readyz$/.exec(value ?? "") ?? [];
  return token !== undefined && isSameDigest(sha256(token), digest);
};

/** Returns the client address that a standby node named in a request; undefined for requests that no standby node forwarded. */
export type TakeForwardedAddress = (request: Request) => string | undefined;

export const NOT_ACTIVE_MESSAGE = "This node is not the active one.";

/**
 * Returns the mark by which a standby node recognizes a node's refusal. The mark is not the token and does not reveal it, because a standby
 * node with an older version forwards the response to its client as a plain 503.
 */
export const toDeclineMark = (token: string): string => sha256(`elsewhere ${token}`);

/** How long the remainder of a request's body is read and discarded. */
const DISCARD_TIMEOUT_MS = 100;

const discardBody = async ({ body }: Request): Promise<void> => {
  // A locked body is read by the request's handler.
  const reader = body?.locked === false ? body.getReader() : undefined;
  while (reader && !(await reader.read().catch(() => ({ done: true }))).done);
};

/**
 * Returns the response of a node that is not active any more or does not own this shard. It states that the node has started nothing, so
 * that the next node is asked. Reads the sent body first, because closing a connection with unread bytes would lose the response.
 */
export const decline = async (request: Request, token: string, clock: Clock, shard?: number): Promise<Response> => {
  // A limit even while data keeps arriving is enough, because the asking node buffers only a bounded amount.
  await finishesWithin(clock, DISCARD_TIMEOUT_MS, discardBody(request));
  const named = shard === undefined ? {} : { [SHARD_HEADER]: String(shard) };
  const headers = { [NODE_HEADER]: toDeclineMark(token), connection: "close", "retry-after": "1", ...named };
  return Response.json({ message: NOT_ACTIVE_MESSAGE }, { status: 503, headers });
};

/**
 * Returns a function that removes the header from a request, so that no later code sees it, and returns the client address if the header's
 * token is valid.
 */
export const makeForwardedAddressTaker = (token: string): TakeForwardedAddress => {
  const digest = sha256(token);
  return (request) => {
    const value = request.headers.get(NODE_HEADER);
    if (value === null) return undefined;
    request.headers.delete(NODE_HEADER);
    return parseForwardedAddress(value, digest);
  };
};
