// UDP datagrams inside a tunnel (RFC 768). [TL-22]
import { checksum, type Ends, IP6_HEAD, newPacket, type Packet, PROTOCOL } from "./ip6.ts";

const HEAD = 8;

export interface Datagram {
  readonly sourcePort: number;
  readonly targetPort: number;
  /** A view of the packet. */
  readonly data: Uint8Array;
}

/** Returns undefined if it is malformed or its checksum, which IPv6 requires, is wrong. */
export const parseDatagram = (packet: Packet): Datagram | undefined => {
  const { payload } = packet;
  if (payload.byteLength < HEAD) return undefined;
  const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
  const length = view.getUint16(4);
  if (length < HEAD || length > payload.byteLength || checksum(packet.bytes) !== 0) return undefined;
  return { sourcePort: view.getUint16(0), targetPort: view.getUint16(2), data: payload.subarray(HEAD, length) };
};

/** Returns a datagram as a packet. */
export const encodeDatagram = (ends: Ends, { sourcePort, targetPort, data }: Datagram): Uint8Array => {
  const packet = newPacket(PROTOCOL.udp, ends, HEAD + data.byteLength);
  const view = new DataView(packet.buffer);
  view.setUint16(IP6_HEAD, sourcePort);
  view.setUint16(IP6_HEAD + 2, targetPort);
  view.setUint16(IP6_HEAD + 4, HEAD + data.byteLength);
  packet.set(data, IP6_HEAD + HEAD);
  // 0 would mean that there is no checksum (RFC 8200 8.1).
  view.setUint16(IP6_HEAD + 6, checksum(packet) || 0xffff);
  return packet;
};
