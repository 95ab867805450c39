// Limits API requests per user and minute; anonymous callers are counted by network (facts/platform 3.1, rules OP-15, OP-16). Agents are
// not counted here, because they have their own limits. Programs on this machine are counted only if the setting has a number.
import type { Clock } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import { Throttle, toNetwork } from "#domain/users/throttle.ts";
import type { SharedCounts } from "#src/cluster/shared-counts.ts";
import type { Addresses } from "./address.ts";
import { findSender, type Identity } from "./caller.ts";
import { getPath } from "./errors.ts";
import type { Operations } from "./operations.ts";

const DEFAULT_CALLS = 512;
/** Limit for operations that declare `rate: "upload"`: an archive can be a hundred MiB. */
const MAX_UPLOADS = 12;

type RateLimitDeps = {
  readonly clock: Clock;
  readonly addresses: Addresses;
  readonly config: Pick<Config, "api_rate_limit">;
};

/** Counts shared with other nodes, if any. */
export type OthersCounts = SharedCounts | undefined;

export class RateLimits {
  readonly #addresses: Addresses;
  readonly #exemptsThisMachine: boolean;
  readonly #calls: Throttle;
  readonly #uploads: Throttle;

  /** Returns the limits, or undefined when nothing is limited. */
  static create(deps: RateLimitDeps, shared?: OthersCounts): RateLimits | undefined {
    return deps.config.api_rate_limit === 0 ? undefined : new RateLimits(deps, shared);
  }

  private constructor({ clock, addresses, config }: RateLimitDeps, shared: OthersCounts) {
    // Undefined means the default limit, and none for this machine.
    const limit = config.api_rate_limit;
    this.#addresses = addresses;
    this.#exemptsThisMachine = limit === undefined;
    this.#calls = new Throttle(clock, limit ?? DEFAULT_CALLS);
    this.#uploads = new Throttle(clock, MAX_UPLOADS);
    if (!shared) return;
    this.#calls.others = shared.join("calls", this.#calls);
    this.#uploads.others = shared.join("uploads", this.#uploads);
  }

  /** Counts a request. Throws 429 with the seconds to wait when its sender has sent too many in this minute. */
  count(request: Request, identity: Identity, operations: Operations): void {
    const path = getPath(request.url);
    if (!path.startsWith("/api/")) return;
    const sender = findSender(identity);
    if (sender?.kind === "agent") return;
    const address = this.#addresses.of(request);
    if (this.#exemptsThisMachine && isThisMachine(request, address)) return;
    const key = sender ? sender.user_id : toNetwork(address);
    this.#calls.count(key);
    // Looked up only for writes, because most requests are reads.
    if (request.method === "GET") return;
    if (operations.find(request.method, path)?.declared.rate === "upload") this.#uploads.count(key);
  }
}

/** Returns whether the request comes from a program on this machine, and not from a local proxy on behalf of a remote client. */
const isThisMachine = ({ headers }: Request, address: string): boolean =>
  (address.startsWith("127.") || address === "::1") && headers.get("x-forwarded-for") === null;
