// Answers the two kinds of ping inside a tunnel: ICMPv6 echo, and TSMP, with which official clients test a path (facts/wire 4.2). Also
// creates TSMP pings. [TL-22]
import {
  type AddressPair,
  computePacketChecksum,
  createPacket,
  IP6_HEADER_BYTES,
  type Packet,
  PROTOCOL,
} from "./ip6.ts";

const ECHO = { request: 128, reply: 129 } as const;
const TSMP = { ping: 0x70, pong: 0x6f } as const;
const TSMP_ID_BYTES = 8;

/** Returns the answer to a ping; undefined for other packets. */
export const encodePong = (packet: Packet): Uint8Array | undefined => {
  const { protocol, payload } = packet;
  const back: AddressPair = { source: packet.target, target: packet.source };
  if (protocol === PROTOCOL.icmp) {
    if (payload[0] !== ECHO.request || payload.byteLength < 8 || computePacketChecksum(packet.bytes) !== 0)
      return undefined;
    const answer = createPacket(PROTOCOL.icmp, back, payload.byteLength);
    answer.set(payload, IP6_HEADER_BYTES);
    answer[IP6_HEADER_BYTES] = ECHO.reply;
    return withChecksum(answer);
  }
  if (protocol !== PROTOCOL.tsmp || payload[0] !== TSMP.ping || payload.byteLength < 1 + TSMP_ID_BYTES)
    return undefined;
  const answer = createPacket(PROTOCOL.tsmp, back, 1 + TSMP_ID_BYTES + 2);
  answer[IP6_HEADER_BYTES] = TSMP.pong;
  answer.set(payload.subarray(1, 1 + TSMP_ID_BYTES), IP6_HEADER_BYTES + 1);
  return answer;
};

/** Returns a TSMP ping with these 8 bytes as its ID. */
export const encodePing = (ends: AddressPair, id: Uint8Array): Uint8Array => {
  const packet = createPacket(PROTOCOL.tsmp, ends, 1 + TSMP_ID_BYTES);
  packet[IP6_HEADER_BYTES] = TSMP.ping;
  packet.set(id.subarray(0, TSMP_ID_BYTES), IP6_HEADER_BYTES + 1);
  return packet;
};

/** Returns the ID of a TSMP pong, in hex; undefined for other packets. */
export const parsePongId = ({ protocol, payload }: Packet): string | undefined =>
  protocol === PROTOCOL.tsmp && payload[0] === TSMP.pong && payload.byteLength >= 1 + TSMP_ID_BYTES
    ? Buffer.from(payload.subarray(1, 1 + TSMP_ID_BYTES)).toString("hex")
    : undefined;

function withChecksum(packet: Uint8Array): Uint8Array {
  packet[IP6_HEADER_BYTES + 2] = 0;
  packet[IP6_HEADER_BYTES + 3] = 0;
  new DataView(packet.buffer).setUint16(IP6_HEADER_BYTES + 2, computePacketChecksum(packet));
  return packet;
}
