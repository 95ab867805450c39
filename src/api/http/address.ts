// The address a request comes from: the connection's, or what a trusted proxy says it was. Used where tries are counted and where
// someone asks who did it; never to decide what a caller may do.
import { isIP } from "node:net";
import { NetworkList, plainAddress } from "#base/network/networks.ts";

export class Addresses {
  readonly #proxies: NetworkList;
  readonly #peerOf: (request: Request) => string | undefined;

  /** `proxies` are addresses or networks in CIDR form (setting trusted_proxies). */
  constructor(proxies: readonly string[], peerOf: (request: Request) => string | undefined) {
    this.#peerOf = peerOf;
    this.#proxies = new NetworkList(proxies);
  }

  /** The last address in the chain that is no proxy of ours; empty when the connection has disconnected. */
  of(request: Request): string {
    let address = plain(this.#peerOf(request) ?? "");
    const forwarded = request.headers.get("x-forwarded-for")?.split(",") ?? [];
    while (this.#proxies.has(address)) {
      const before = plain(forwarded.pop()?.trim() ?? "");
      if (isIP(before) === 0) break;
      address = before;
    }
    return address;
  }
}

/** IPv4 that came in on an IPv6 socket is IPv4; some proxies tell the port, too. */
const plain = (address: string): string =>
  plainAddress(address.replace(/^(?:\[([\da-f:.]+)\](?::\d+)?|([\d.]+):\d+)$/i, "$1$2"));
