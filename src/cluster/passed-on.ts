// What a spare says of a request that it passes on, and who is believed when it says so.
import type { Clock } from "#base/clock.ts";
import type { Encryption } from "#base/encryption.ts";
import { sameDigest, sha256 } from "#base/ids.ts";
import { NODE_HEADER, PART_HEADER } from "#base/network/node-headers.ts";
import { within } from "#base/retry.ts";

/** What a node says to the active one, so that it is believed about the client's address. */
export const nodeToken = (encryption: Encryption): string => encryption.deriveUuid("cluster node");

/** The address that a node has named whose token has this digest; undefined for every other value. Compares in a time that tells nothing. */
export const addressNamedBy = (value: string | null, digest: string): string | undefined => {
  const [, given, address] = /^(\S{1,200}) ([\da-fA-F:.]{2,45})$/.exec(value ?? "") ?? [];
  return given !== undefined && sameDigest(sha256(given), digest) ? address : undefined;
};

/** How a node asks whether this one is ready, for itself. */
export const askedByNode = (token: string): string => `${token} readyz`;

export const isAskedByNode = (value: string | undefined, digest: string): boolean => {
  const [, given] = /^(\S{1,200}) readyz$/.exec(value ?? "") ?? [];
  return given !== undefined && sameDigest(sha256(given), digest);
};

/** The client's address that a spare names in a request; undefined where none does. */
export type TakeNamed = (request: Request) => string | undefined;

export const NOT_ACTIVE = "This node is not the active one.";

/**
 * By what a spare recognizes that answer of a node. A spare of a version before this passes it on to its client as a plain 503, so it is not the token
 * itself, nor can that be derived from it.
 */
export const toPassMark = (token: string): string => sha256(`elsewhere ${token}`);

/** For how long what is sent of a body is read. */
const REST_MS = 100;

const readAway = async ({ body }: Request): Promise<void> => {
  // Else its handler has read it.
  const reader = body?.locked === false ? body.getReader() : undefined;
  while (reader && !(await reader.read().catch(() => ({ done: true }))).done);
};

/**
 * What a node answers that is not the active one any more, or does not have this part: nothing was begun, and the next one is asked. What has been
 * sent is read first: an answer in front of unread bytes is lost when the connection is closed.
 */
export const elsewhere = async (request: Request, token: string, clock: Clock, part?: number): Promise<Response> => {
  // No longer than that, also where it comes steadily: the node that asks keeps no more than it can hold.
  await within(clock, REST_MS, readAway(request));
  const named = part === undefined ? {} : { [PART_HEADER]: String(part) };
  const headers = { [NODE_HEADER]: toPassMark(token), connection: "close", "retry-after": "1", ...named };
  return Response.json({ message: NOT_ACTIVE }, { status: 503, headers });
};

/** Takes that header from the request, so that nothing behind this sees it; believed is only who has the token. */
export const takerOfNames = (token: string): TakeNamed => {
  const digest = sha256(token);
  return (request) => {
    const value = request.headers.get(NODE_HEADER);
    if (value === null) return undefined;
    request.headers.delete(NODE_HEADER);
    return addressNamedBy(value, digest);
  };
};
