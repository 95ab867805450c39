// Normalizes IP addresses and matches them against networks, including the ranges outside the public internet. All checks of addresses
// use this file: for outgoing connections to addresses from settings, responses or people, and for the addresses of requests.
import { BlockList, isIP } from "node:net";

const toFamily = (address: string): "ipv4" | "ipv6" => (isIP(address) === 6 ? "ipv6" : "ipv4");

/** A list of addresses and networks in CIDR form. */
export class NetworkList {
  readonly #list = new BlockList();

  constructor(networks: readonly string[]) {
    for (const network of networks) {
      const [base = "", bits] = network.split("/");
      const allBits = isIP(base) === 6 ? 128 : 32;
      this.#list.addSubnet(base, bits === undefined ? allBits : Number(bits), toFamily(base));
    }
  }

  /** Returns whether the address, in any notation, is in one of the networks; false if it is not an address. */
  has(address: string): boolean {
    const plain = normalizeAddress(address);
    return isIP(plain) !== 0 && this.#list.check(plain, toFamily(plain));
  }
}

// IANA's special-purpose registries. IPv4 inside IPv6 is treated as IPv4.
/** All ranges outside the public internet. */
export const NON_PUBLIC_NETWORKS = new NetworkList([
  ...["0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"],
  ...["192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"],
  ...["224.0.0.0/4", "240.0.0.0/4"],
  ...["::/127", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16", "fc00::/7"],
  ...["fe80::/10", "fec0::/10", "ff00::/8"],
]);

/**
 * Returns the IPv4 address embedded in an IPv6 one, or the address itself: mapped (::ffff:a.b.c.d, in every spelling), translated
 * (::ffff:0:a.b.c.d), NAT64 (64:ff9b::/96), 6to4 (2002::/16), ISATAP and the old compatible form (::a.b.c.d).
 */
export const normalizeAddress = (address: string): string => {
  if (isIP(address) !== 6) return address;
  const words = toWords(address);
  const formatV4 = (high = 0, low = 0): string => [high >> 8, high & 255, low >> 8, low & 255].join(".");
  const hasPrefix = (...prefix: number[]): boolean => prefix.every((word, i) => words[i] === word);
  const isInLastWords =
    hasPrefix(0, 0, 0, 0, 0, 0xffff) || hasPrefix(0, 0, 0, 0, 0xffff, 0) || hasPrefix(0x64, 0xff9b, 0, 0, 0, 0);
  const isIsatap = words[5] === 0x5efe && (words[4] === 0 || words[4] === 0x200);
  // :: and ::1 do not contain an IPv4 address.
  const isCompatible = hasPrefix(0, 0, 0, 0, 0, 0) && (words[6] !== 0 || (words[7] ?? 0) > 1);
  if (isInLastWords || isIsatap || isCompatible) return formatV4(words[6], words[7]);
  return hasPrefix(0x2002) ? formatV4(words[1], words[2]) : address;
};

/** Returns the eight 16-bit words of an IPv6 address. */
const toWords = (address: string): number[] => {
  // The URL parser normalizes every form, including one that ends in an IPv4 address, to hexadecimal words.
  const host = new URL(`http://[${address.split("%")[0]}]/`).hostname.slice(1, -1);
  const [head = "", tail] = host.split("::");
  const parseWords = (text: string): number[] =>
    text === "" ? [] : text.split(":").map((word) => Number.parseInt(word, 16));
  const [leading, trailing] = [parseWords(head), parseWords(tail ?? "")];
  return [...leading, ...Array.from({ length: 8 - leading.length - trailing.length }, () => 0), ...trailing];
};
