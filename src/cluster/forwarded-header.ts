// The header that a spare adds to forwarded requests, and its verification.
import type { Clock } from "#base/clock.ts";
import type { Encryption } from "#base/encryption.ts";
import { isSameDigest, sha256 } from "#base/ids.ts";
import { NODE_HEADER, SHARD_HEADER } from "#base/network/node-headers.ts";
import { finishesWithin } from "#base/retry.ts";

/** Returns the token with which a node proves to the active one that its client address can be trusted. */
export const deriveNodeToken = (encryption: Encryption): string => encryption.deriveUuid("cluster node");

/** Returns the address named by a node whose token has this digest; undefined for every other value. The comparison takes constant time. */
export const parseForwardedAddress = (value: string | null, digest: string): string | undefined => {
  const [, given, address] = /^(\S{1,200}) ([\da-fA-F:.]{2,45})$/.exec(value ?? "") ?? [];
  return given !== undefined && isSameDigest(sha256(given), digest) ? address : undefined;
};

/** Returns the header value with which a node asks for another node's own readiness. */
export const formatReadinessHeader = (token: string): string => `${token} readyz`;

export const isAskedByNode = (value: string | undefined, digest: string): boolean => {
  const [, given] = /^(\S{1,200}) readyz$/.exec(value ?? "") ?? [];
  return given !== undefined && isSameDigest(sha256(given), digest);
};

/** Returns the client address that a spare named in a request; undefined if none exists. */
export type TakeForwardedAddress = (request: Request) => string | undefined;

export const NOT_ACTIVE_MESSAGE = "This node is not the active one.";

/**
 * Returns the mark by which a spare recognizes a node's refusal. The mark is not the token and does not reveal it, because a spare with an
 * older version forwards the response to its client as a plain 503.
 */
export const toDeclineMark = (token: string): string => sha256(`elsewhere ${token}`);

/** How long the rest of a sent body is read. */
const DISCARD_TIMEOUT_MS = 100;

const discardBody = async ({ body }: Request): Promise<void> => {
  // Otherwise its handler has read it.
  const reader = body?.locked === false ? body.getReader() : undefined;
  while (reader && !(await reader.read().catch(() => ({ done: true }))).done);
};

/**
 * Returns the response of a node that is not active any more or does not own this shard: nothing was started, and the next node is asked.
 * First reads what has been sent, because a response in front of unread bytes is lost when the connection is closed.
 */
export const decline = async (request: Request, token: string, clock: Clock, shard?: number): Promise<Response> => {
  // Limited even if data keeps arriving, because the asking node buffers only a bounded amount.
  await finishesWithin(clock, DISCARD_TIMEOUT_MS, discardBody(request));
  const named = shard === undefined ? {} : { [SHARD_HEADER]: String(shard) };
  const headers = { [NODE_HEADER]: toDeclineMark(token), connection: "close", "retry-after": "1", ...named };
  return Response.json({ message: NOT_ACTIVE_MESSAGE }, { status: 503, headers });
};

/**
 * Returns a function that removes the header from the request, so that no later code sees it, and returns its address if the token is
 * valid.
 */
export const takerOfNames = (token: string): TakeForwardedAddress => {
  const digest = sha256(token);
  return (request) => {
    const value = request.headers.get(NODE_HEADER);
    if (value === null) return undefined;
    request.headers.delete(NODE_HEADER);
    return parseForwardedAddress(value, digest);
  };
};
