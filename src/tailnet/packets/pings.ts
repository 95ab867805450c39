// The two kinds of ping that are answered inside a tunnel: ICMPv6 echo, and TSMP, with which official clients test a path (facts/wire 4.2).
// Also creates our own pings. [TL-22]
import { checksum, type Ends, IP6_HEAD, newPacket, type Packet, PROTOCOL } from "./ip6.ts";

const ECHO = { request: 128, reply: 129 } as const;
const TSMP = { ping: 0x70, pong: 0x6f } as const;
const TSMP_ID_BYTES = 8;

/** Returns the answer to a ping; undefined for anything else. */
export const pong = (packet: Packet): Uint8Array | undefined => {
  const { protocol, payload } = packet;
  const back: Ends = { source: packet.target, target: packet.source };
  if (protocol === PROTOCOL.icmp) {
    if (payload[0] !== ECHO.request || payload.byteLength < 8 || checksum(packet.bytes) !== 0) return undefined;
    const answer = newPacket(PROTOCOL.icmp, back, payload.byteLength);
    answer.set(payload, IP6_HEAD);
    answer[IP6_HEAD] = ECHO.reply;
    return checked(answer);
  }
  if (protocol !== PROTOCOL.tsmp || payload[0] !== TSMP.ping || payload.byteLength < 1 + TSMP_ID_BYTES)
    return undefined;
  const answer = newPacket(PROTOCOL.tsmp, back, 1 + TSMP_ID_BYTES + 2);
  answer[IP6_HEAD] = TSMP.pong;
  answer.set(payload.subarray(1, 1 + TSMP_ID_BYTES), IP6_HEAD + 1);
  return answer;
};

/** Returns a TSMP ping with these 8 bytes as its ID. */
export const ping = (ends: Ends, id: Uint8Array): Uint8Array => {
  const packet = newPacket(PROTOCOL.tsmp, ends, 1 + TSMP_ID_BYTES);
  packet[IP6_HEAD] = TSMP.ping;
  packet.set(id.subarray(0, TSMP_ID_BYTES), IP6_HEAD + 1);
  return packet;
};

/** Returns the ID of a TSMP pong, in hex; undefined for anything else. */
export const pongId = ({ protocol, payload }: Packet): string | undefined =>
  protocol === PROTOCOL.tsmp && payload[0] === TSMP.pong && payload.byteLength >= 1 + TSMP_ID_BYTES
    ? Buffer.from(payload.subarray(1, 1 + TSMP_ID_BYTES)).toString("hex")
    : undefined;

function checked(packet: Uint8Array): Uint8Array {
  packet[IP6_HEAD + 2] = 0;
  packet[IP6_HEAD + 3] = 0;
  new DataView(packet.buffer).setUint16(IP6_HEAD + 2, checksum(packet));
  return packet;
}
