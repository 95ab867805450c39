// How many API calls one user may make in a minute; strangers are counted by their network (facts/platform 3.1, rules OP-15, OP-16).
// Agents are not counted: each has bounds of its own. Programs on this machine are counted only where the setting says a number.
import type { Clock } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import { Throttle, toNetwork } from "#domain/users/throttle.ts";
import type { SharedCounts } from "#src/cluster/shared-counts.ts";
import type { Addresses } from "./address.ts";
import { type Identity, somebodyIn } from "./caller.ts";
import { getPath } from "./errors.ts";
import type { Operations } from "./operations.ts";

const CALLS = 512;
/** Those that declare `rate: "upload"`: archives are a hundred mebibytes each. */
const UPLOADS = 12;

type Needs = { readonly clock: Clock; readonly addresses: Addresses; readonly config: Pick<Config, "api_rate_limit"> };

/** What other nodes count, where there are any. */
export type OthersCounts = SharedCounts | undefined;

export class RateLimits {
  readonly #addresses: Addresses;
  readonly #sparesThisMachine: boolean;
  readonly #calls: Throttle;
  readonly #uploads: Throttle;

  /** The limits, or undefined where nobody is counted. */
  static of(needs: Needs, shared?: OthersCounts): RateLimits | undefined {
    return needs.config.api_rate_limit === 0 ? undefined : new RateLimits(needs, shared);
  }

  private constructor({ clock, addresses, config }: Needs, shared: OthersCounts) {
    // Undefined: the usual number, and none for this machine.
    const limit = config.api_rate_limit;
    this.#addresses = addresses;
    this.#sparesThisMachine = limit === undefined;
    this.#calls = new Throttle(clock, limit ?? CALLS);
    this.#uploads = new Throttle(clock, UPLOADS);
    if (!shared) return;
    this.#calls.others = shared.join("calls", this.#calls);
    this.#uploads.others = shared.join("uploads", this.#uploads);
  }

  /** Counts a request; 429 with the seconds to wait when its sender has made too many in this minute. */
  count(request: Request, identity: Identity, operations: Operations): void {
    const path = getPath(request.url);
    if (!path.startsWith("/api/")) return;
    const sender = somebodyIn(identity);
    if (sender?.kind === "agent") return;
    const address = this.#addresses.of(request);
    if (this.#sparesThisMachine && isThisMachine(request, address)) return;
    const key = sender ? sender.user_id : toNetwork(address);
    this.#calls.count(key);
    // Asked of writes alone: most requests are reads.
    if (request.method === "GET") return;
    if (operations.find(request.method, path)?.declared.rate === "upload") this.#uploads.count(key);
  }
}

/** From a program here, and not from a proxy here that speaks for someone elsewhere. */
const isThisMachine = ({ headers }: Request, address: string): boolean =>
  (address.startsWith("127.") || address === "::1") && headers.get("x-forwarded-for") === null;
