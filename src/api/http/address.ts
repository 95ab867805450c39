// Determines the client address of a request: the connection's, or the one reported by a trusted proxy. Used for rate limits and audit
// records, never for access decisions.
import { isIP } from "node:net";
import { NetworkList, normalizeAddress } from "#base/network/networks.ts";

export class Addresses {
  readonly #proxies: NetworkList;
  readonly #getPeer: (request: Request) => string | undefined;

  /** `proxies` are addresses or networks in CIDR form (setting trusted_proxies). */
  constructor(proxies: readonly string[], getPeer: (request: Request) => string | undefined) {
    this.#getPeer = getPeer;
    this.#proxies = new NetworkList(proxies);
  }

  /** Returns the last address in the chain that is not a trusted proxy; empty when the connection has closed. */
  of(request: Request): string {
    let address = toPlainAddress(this.#getPeer(request) ?? "");
    const forwarded = request.headers.get("x-forwarded-for")?.split(",") ?? [];
    while (this.#proxies.has(address)) {
      const previous = toPlainAddress(forwarded.pop()?.trim() ?? "");
      if (isIP(previous) === 0) break;
      address = previous;
    }
    return address;
  }
}

/** Converts an IPv4-mapped IPv6 address to IPv4 and strips the port that some proxies add. */
const toPlainAddress = (address: string): string =>
  normalizeAddress(address.replace(/^(?:\[([\da-f:.]+)\](?::\d+)?|([\d.]+):\d+)$/i, "$1$2"));
