// UDP datagrams inside a tunnel (RFC 768). [TL-22]
import {
  type AddressPair,
  computePacketChecksum,
  createPacket,
  IP6_HEADER_BYTES,
  type Packet,
  PROTOCOL,
} from "./ip6.ts";

const HEADER_BYTES = 8;

export interface Datagram {
  readonly sourcePort: number;
  readonly targetPort: number;
  /** A view of the packet. */
  readonly data: Uint8Array;
}

/** Parses a datagram; undefined if it is malformed or its checksum, which IPv6 requires, is wrong. */
export const parseDatagram = (packet: Packet): Datagram | undefined => {
  const { payload } = packet;
  if (payload.byteLength < HEADER_BYTES) return undefined;
  const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
  const length = view.getUint16(4);
  if (length < HEADER_BYTES || length > payload.byteLength || computePacketChecksum(packet.bytes) !== 0)
    return undefined;
  return { sourcePort: view.getUint16(0), targetPort: view.getUint16(2), data: payload.subarray(HEADER_BYTES, length) };
};

/** Encodes a datagram as a packet. */
export const encodeDatagram = (ends: AddressPair, { sourcePort, targetPort, data }: Datagram): Uint8Array => {
  const packet = createPacket(PROTOCOL.udp, ends, HEADER_BYTES + data.byteLength);
  const view = new DataView(packet.buffer);
  view.setUint16(IP6_HEADER_BYTES, sourcePort);
  view.setUint16(IP6_HEADER_BYTES + 2, targetPort);
  view.setUint16(IP6_HEADER_BYTES + 4, HEADER_BYTES + data.byteLength);
  packet.set(data, IP6_HEADER_BYTES + HEADER_BYTES);
  // A checksum of 0 is sent as 0xffff, because 0 means that there is no checksum (RFC 8200 8.1).
  view.setUint16(IP6_HEADER_BYTES + 6, computePacketChecksum(packet) || 0xffff);
  return packet;
};
