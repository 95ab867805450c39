// The address a request comes from: the connection's, or what a trusted proxy says it was. Used where tries are counted and where
// somebody asks who did it; never to decide what a caller may do.
import { BlockList, isIP } from "node:net";

export class Addresses {
  readonly #proxies = new BlockList();
  readonly #peerOf: (request: Request) => string | undefined;

  /** `proxies` are addresses or networks in CIDR form (setting trusted_proxies). */
  constructor(proxies: readonly string[], peerOf: (request: Request) => string | undefined) {
    this.#peerOf = peerOf;
    for (const proxy of proxies) {
      const [address = "", bits] = proxy.split("/");
      const family = isIP(address) === 6 ? "ipv6" : "ipv4";
      if (bits === undefined) this.#proxies.addAddress(address, family);
      else this.#proxies.addSubnet(address, Number(bits), family);
    }
  }

  /** The last address in the chain that is no proxy of ours; empty when the connection is gone. */
  of(request: Request): string {
    let address = plain(this.#peerOf(request) ?? "");
    const forwarded = request.headers.get("x-forwarded-for")?.split(",") ?? [];
    while (this.#isProxy(address)) {
      const before = plain(forwarded.pop()?.trim() ?? "");
      if (isIP(before) === 0) break;
      address = before;
    }
    return address;
  }

  #isProxy(address: string): boolean {
    const version = isIP(address);
    return version !== 0 && this.#proxies.check(address, version === 6 ? "ipv6" : "ipv4");
  }
}

/** IPv4 that came in on an IPv6 socket is IPv4; some proxies tell the port, too. */
const plain = (address: string): string =>
  address.replace(/^(?:\[([\da-f:.]+)\](?::\d+)?|([\d.]+):\d+)$/i, "$1$2").replace(/^::ffff:(?=\d+\.)/i, "");
