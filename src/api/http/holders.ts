// Limits the number of long-lived connections, and shares them among the people and machines that open them (rule SK-2). WebSockets and
// event streams are counted separately.
import { AppError } from "#base/errors.ts";
import type { AgentCaller, UserCaller } from "./caller.ts";

const VISITOR_SHARE = 0.75;
/** The share of all connections that is reserved for people; the same share is reserved for machines. */
const RESERVED_SHARE = 1 / 4;
/** The share that is reserved for holders with few connections. */
const FEW_SHARE = 1 / 8;
/**
 * A holder with fewer connections than this has few. On a server that allows fewer than a thousand, the threshold is a 64th of the limit.
 */
const FEW_COUNT = 16;

export type ConnectionCounts = {
  /** Maximum number of connections of the server. */
  readonly limit: number;
  /** Open connections of people. */
  readonly people: number;
  /** Open connections of machines: agents and workers. */
  readonly machines: number;
  /** Open connections of the holder that opens another one. */
  readonly heldCount: number;
  readonly isMachine: boolean;
};

/** Returns the number of connections below which a holder has few. */
export const countFew = (limit: number): number => Math.max(1, Math.min(FEW_COUNT, Math.floor(limit / 64)));

/** Returns the number of connections that are reserved for holders with few. */
export const countReservedForFew = (limit: number): number => Math.floor(limit * FEW_SHARE);

/**
 * Returns whether a holder can open one more connection. A holder with few can if any connection is free for
 * its kind. A holder with more can if it holds fewer than are free after the reserve for holders with few, so its share shrinks as the
 * server fills.
 */
export const hasShare = ({ limit, people, machines, heldCount, isMachine }: ConnectionCounts): boolean => {
  const reservedForOthers = Math.max(0, Math.floor(limit * RESERVED_SHARE) - (isMachine ? people : machines));
  const freeCount = limit - people - machines - reservedForOthers;
  return heldCount < countFew(limit) ? freeCount > 0 : heldCount < freeCount - countReservedForFew(limit);
};

export type ConnectionHolder = {
  /** Who opens it, such as a user ID. */
  readonly who?: string | undefined;
  /** Machines only: the person or organization whose machines share the connections. */
  readonly owner?: string | undefined;
};

/** Returns the holder of all connections of a person's agents. */
export const toAgentsOwner = ({ owner_id }: Pick<AgentCaller, "owner_id">): string => `agents of ${owner_id}`;

export const toHolder = (caller: UserCaller | AgentCaller): ConnectionHolder =>
  caller.kind === "user" ? { who: caller.user_id } : { who: caller.agent_id, owner: toAgentsOwner(caller) };

/** Shares the connections of the server among people, the agents of each owner, and the workers of each organization. */
export class ConnectionShares {
  readonly #limit: number;
  readonly #countByHolder = new Map<string, number>();
  #people = 0;
  #machines = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Throws 503 when one more connection would exceed the share of the holder, or the limit `maxOwn` for `who`. */
  check({ who, owner, maxOwn }: ConnectionHolder & { readonly maxOwn?: number | undefined }): void {
    const heldCount = this.#countHeld(owner ?? who);
    const counts = { limit: this.#limit, people: this.#people, machines: this.#machines };
    const isAllowed = hasShare({ ...counts, heldCount, isMachine: owner !== undefined });
    if (isAllowed && (maxOwn === undefined || this.#countHeld(who) < maxOwn)) return;
    if (isAllowed || heldCount >= countFew(this.#limit)) {
      throw new AppError("overloaded", "You have too many open connections.");
    }
    throw new AppError("overloaded", "The server has too many open connections.");
  }

  /** Adds or removes one connection. */
  count({ who, owner }: ConnectionHolder, change: 1 | -1): void {
    if (owner === undefined) this.#people += change;
    else this.#machines += change;
    for (const holder of [who, owner]) if (holder !== undefined) addTo(this.#countByHolder, holder, change);
  }

  #countHeld(holder: string | undefined): number {
    return holder === undefined ? 0 : (this.#countByHolder.get(holder) ?? 0);
  }
}

/** Limits the connections of visitors without an account; those of one workspace have at most three quarters of them (rule AX-28). */
export class VisitorLimits {
  readonly #limit: number;
  readonly #countByWorkspace = new Map<string, number>();
  #total = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Throws 503 when one more connection would exceed the limit of all visitors, or of the workspace's visitors. */
  check(workspace_id: string): void {
    const heldCount = this.#countByWorkspace.get(workspace_id) ?? 0;
    if (this.#total < this.#limit && heldCount < Math.ceil(this.#limit * VISITOR_SHARE)) return;
    throw new AppError("overloaded", "Too many visitors without an account use apps. Sign in, or try again later.");
  }

  /** Adds or removes one connection. */
  count(workspace_id: string, change: 1 | -1): void {
    this.#total += change;
    addTo(this.#countByWorkspace, workspace_id, change);
  }
}

const addTo = (counts: Map<string, number>, key: string, change: 1 | -1): void => {
  const count = (counts.get(key) ?? 0) + change;
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
};
