// IPv6 packets inside a tunnel. Extension headers are not supported, because no peer sends them (facts/tailnet-peer 5). [TL-22]

export const PROTOCOL = { tcp: 6, udp: 17, icmp: 58, tsmp: 99 } as const;
export const IP6_HEADER_BYTES = 40;
/** A header and the largest payload that its 16-bit length can express. */
export const MAX_PACKET = IP6_HEADER_BYTES + 0xffff;
const ADDRESS_BYTES = 16;

/** A packet. Views of its parts are created on demand, because most packets are identified by their addresses without a view. */
export class Packet {
  readonly #whole: Uint8Array;
  readonly #end: number;

  constructor(whole: Uint8Array, end: number) {
    this.#whole = whole;
    this.#end = end;
  }

  get protocol(): number {
    return this.#whole[6] as number;
  }
  get source(): Uint8Array {
    return this.#whole.subarray(8, 24);
  }
  get target(): Uint8Array {
    return this.#whole.subarray(24, IP6_HEADER_BYTES);
  }
  get payload(): Uint8Array {
    return this.#whole.subarray(IP6_HEADER_BYTES, this.#end);
  }
  /** The packet without WireGuard's padding. */
  get bytes(): Uint8Array {
    return this.#whole.subarray(0, this.#end);
  }

  /** Returns whether both packets have the same source and destination. */
  hasSameEnds(other: Packet): boolean {
    const [a, b] = [this.#whole, other.#whole];
    for (let i = 8; i < IP6_HEADER_BYTES; i += 1) if (a[i] !== b[i]) return false;
    return true;
  }

  /** Returns a packet with the same addresses, without the payload. */
  withoutPayload(): Packet {
    return new Packet(this.#whole.slice(0, IP6_HEADER_BYTES), IP6_HEADER_BYTES);
  }
}

/** Parses a packet; undefined if the bytes are not a complete IPv6 packet. */
export const parsePacket = (bytes: Uint8Array): Packet | undefined => {
  if (bytes.byteLength < IP6_HEADER_BYTES || (bytes[0] as number) >> 4 !== 6) return undefined;
  const end = IP6_HEADER_BYTES + (((bytes[4] as number) << 8) | (bytes[5] as number));
  return bytes.byteLength < end ? undefined : new Packet(bytes, end);
};

export type AddressPair = { readonly source: Uint8Array; readonly target: Uint8Array };

/** Returns a packet with space for `length` bytes after its header. */
export const createPacket = (protocol: number, ends: AddressPair, length: number): Uint8Array =>
  writeHeader(new Uint8Array(IP6_HEADER_BYTES + length), protocol, ends, length);

/**
 * Writes a packet's header at the start of a buffer whose bytes before the length field must be 0. Returns the packet: the header and the
 * `length` bytes after it.
 */
export const writeHeader = (target: Uint8Array, protocol: number, ends: AddressPair, length: number): Uint8Array => {
  target[0] = 0x60;
  target[4] = length >> 8;
  target[5] = length;
  target[6] = protocol;
  target[7] = 64;
  target.set(ends.source, 8);
  target.set(ends.target, 24);
  return target.subarray(0, IP6_HEADER_BYTES + length);
};

/** Computes the Internet checksum of a packet's pseudo-header and payload (RFC 8200 8.1); 0 if the packet contains its correct checksum. */
export const computePacketChecksum = (packet: Uint8Array): number => {
  const even = packet.byteOffset % 2 === 0 ? packet : packet.slice();
  return computeChecksum(packet, new Uint16Array(even.buffer, even.byteOffset, packet.byteLength >> 1));
};

/** Computes the checksum of a packet, with an existing view of it as 16-bit words. */
export const computeChecksum = (packet: Uint8Array, words: Uint16Array): number => {
  const end = packet.byteLength;
  let sum = toNetworkOrder(end - IP6_HEADER_BYTES + (packet[6] as number));
  // The sum does not depend on byte order, so words are added in this machine's order.
  const last = end >> 1;
  for (let i = 4; i < last; i += 1) sum += words[i] as number;
  if (end % 2 === 1) sum += IS_LITTLE ? (packet[end - 1] as number) : (packet[end - 1] as number) << 8;
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return toNetworkOrder(~sum & 0xffff);
};

const IS_LITTLE = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;
/** Converts a 16-bit word between network byte order and this machine's. */
const toNetworkOrder = (word: number): number => (IS_LITTLE ? ((word & 0xff) << 8) | ((word >>> 8) & 0xff) : word);

/** Returns the 16 bytes of an IPv6 address in any form that a URL allows. Throws RangeError for any other text. */
export const parseAddress = (text: string): Uint8Array => {
  const [front = "", back, ...more] = text.split("::");
  const splitWords = (part: string): string[] => (part === "" ? [] : part.split(":"));
  const [head, tail] = [splitWords(front), splitWords(back ?? "")];
  const missing = 8 - head.length - tail.length;
  if (more.length > 0 || (back === undefined ? missing !== 0 : missing < 1))
    throw new RangeError(`no IPv6 address: ${text}`);
  const all = [...head, ...Array<string>(missing).fill("0"), ...tail];
  if (!all.every((word) => /^[0-9a-f]{1,4}$/i.test(word))) throw new RangeError(`no IPv6 address: ${text}`);
  const out = new Uint8Array(ADDRESS_BYTES);
  for (const [i, word] of all.entries()) new DataView(out.buffer).setUint16(i * 2, Number.parseInt(word, 16));
  return out;
};

/** Formats all eight words of an address. */
export const formatIp6 = (address: Uint8Array): string =>
  (Buffer.from(address).toString("hex").match(/.{4}/g) ?? []).join(":");

/** Returns a map key for an address, which is cheaper than its text. */
export const toAddressKey = (address: Uint8Array): string =>
  Buffer.from(address.buffer, address.byteOffset, ADDRESS_BYTES).toString("latin1");
