// Packets inside a tunnel: the parsers decode encoded packets and packets of other implementations, and return undefined for invalid ones.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  computePacketChecksum,
  createPacket,
  formatIp6,
  type Packet,
  PROTOCOL,
  parseAddress,
  parsePacket,
} from "#src/tailnet/packets/ip6.ts";
import { encodePing, encodePong, parsePongId } from "#src/tailnet/packets/pings.ts";
import { encodeSegment, FLAG, parseSegment } from "#src/tailnet/packets/segment.ts";
import { encodeDatagram, parseDatagram } from "#src/tailnet/packets/udp.ts";

const addresses = {
  source: parseAddress("fd7a:115c:a1e0::1"),
  target: parseAddress("fd7a:115c:a1e0:6677:8899:aabb:ccdd:eeff"),
};
const hex = (text: string): Uint8Array => new Uint8Array(Buffer.from(text.replaceAll(/\s/g, ""), "hex"));
const parseValid = (bytes: Uint8Array): Packet => parsePacket(bytes) as Packet;
const anyUint16 = fc.integer({ min: 0, max: 0xffff });
const anyUint32 = fc.integer({ min: 0, max: 0xffffffff });

describe("addresses", () => {
  test("[TL-22] are parsed in every notation; other texts are rejected", () => {
    expect(formatIp6(addresses.source)).toBe("fd7a:115c:a1e0:0000:0000:0000:0000:0001");
    expect(formatIp6(parseAddress("::"))).toBe(`${"0000:".repeat(7)}0000`);
    for (const text of ["", "1:2:3", "1:2:3:4:5:6:7:8:9", "g::", "1::2::3::4::5::6::7::8", "12345::"]) {
      expect(() => parseAddress(text)).toThrow(RangeError);
    }
  });
});

describe("segments", () => {
  test("[TL-22] with any content are decoded as they were encoded", () => {
    const blocks = fc.array(fc.record({ from: anyUint32, to: anyUint32 }), { maxLength: 4 });
    const data = fc.uint8Array({ maxLength: 1_220 });
    fc.assert(
      fc.property(
        anyUint16,
        anyUint16,
        anyUint32,
        anyUint32,
        anyUint16,
        blocks,
        data,
        (sourcePort, targetPort, seq, ack, window, blocks, data) => {
          const packet = encodeSegment(
            { ...addresses, sourcePort, targetPort },
            { seq, ack, window, blocks, data, flags: FLAG.ack },
          );
          expect(computePacketChecksum(packet)).toBe(0);
          expect(parseSegment(parseValid(packet).payload)).toEqual({
            sourcePort,
            targetPort,
            seq,
            ack,
            window,
            blocks,
            data,
            flags: FLAG.ack,
            mss: undefined,
            scale: undefined,
            isSackPermitted: false,
            largeMss: undefined,
          });
        },
      ),
    );
  });

  test("[TL-22] that open a connection carry their sender's capabilities", () => {
    for (const syn of [
      { mss: 1_220, scale: 6, isSackPermitted: true },
      { mss: 536, scale: undefined, isSackPermitted: true },
      { mss: 1_220, scale: 0, isSackPermitted: false },
      { mss: 1_220, scale: 6, isSackPermitted: true, largeMss: 16_384 },
      { mss: 1_220, scale: undefined, isSackPermitted: false, largeMss: 65_000 },
    ]) {
      const packet = encodeSegment(
        { ...addresses, sourcePort: 1, targetPort: 2 },
        { seq: 3, ack: 4, flags: FLAG.syn, window: 5, syn },
      );
      expect(parseSegment(parseValid(packet).payload)).toMatchObject({ ...syn, seq: 3, ack: 4, blocks: [] });
    }
  });

  test("[TL-22] with timestamps and unknown options are parsed, up to the first invalid option", () => {
    // Ports 1 and 2, and a 48-byte header with timestamps, an unknown option and the selective acknowledgment of a block.
    const head = "0001 0002 00000007 00000009 c0 10 1000 0000 0000";
    const options = "0101 080a 00000001 00000002 fd04 abcd 01 050a 0000000a 00000014";
    const segment = parseSegment(hex(`${head + options}00`));
    expect(segment?.blocks).toEqual([{ from: 10, to: 20 }]);
    expect(parseSegment(hex(`0001 0002 00000007 00000009 60 10 1000 0000 0000 0200 0000`))).toMatchObject({
      mss: undefined,
    });
    expect(parseSegment(hex("0001 0002 00000007 00000009 40 10 1000 0000 0000"))).toBeUndefined();
    expect(parseSegment(hex("0001 0002 00000007 00000009 f0 10 1000 0000 0000"))).toBeUndefined();
  });
});

describe("datagrams and pings", () => {
  test("[TL-22] datagrams are decoded as they were encoded, and dropped if their checksum or length is wrong", () => {
    fc.assert(
      fc.property(anyUint16, anyUint16, fc.uint8Array({ maxLength: 1_200 }), (sourcePort, targetPort, data) => {
        const packet = encodeDatagram(addresses, { sourcePort, targetPort, data });
        expect(parseDatagram(parseValid(packet))).toEqual({ sourcePort, targetPort, data });
        packet[40] = (packet[40] as number) ^ 1;
        expect(parseDatagram(parseValid(packet))).toBeUndefined();
      }),
    );
    expect(parseDatagram(parseValid(createPacket(PROTOCOL.udp, addresses, 7)))).toBeUndefined();
  });

  test("[TL-22] the system's ICMPv6 ping is answered to its sender, without padding", () => {
    const request = createPacket(PROTOCOL.icmp, addresses, 16);
    request.set(hex("80 00 0000 1234 0001 6162636465666768"), 40);
    new DataView(request.buffer).setUint16(42, computePacketChecksum(request));
    const response = parseValid(encodePong(parseValid(Buffer.concat([request, new Uint8Array(8)]))) as Uint8Array);
    expect(formatIp6(response.target)).toBe(formatIp6(addresses.source));
    expect(computePacketChecksum(response.bytes)).toBe(0);
    expect([response.payload[0], Buffer.from(response.payload.subarray(4)).toString("hex")]).toEqual([
      129,
      "123400016162636465666768",
    ]);
    request[50] = 0;
    expect(encodePong(parseValid(request))).toBeUndefined();
  });

  test("[TL-22] a TSMP ping is answered with its ID", () => {
    const id = hex("0102030405060708");
    const response = parseValid(encodePong(parseValid(encodePing(addresses, id))) as Uint8Array);
    expect(parsePongId(response)).toBe("0102030405060708");
    expect(response.payload).toHaveLength(11);
    expect(encodePong(response)).toBeUndefined();
    expect(parsePongId(parseValid(encodePing(addresses, id)))).toBeUndefined();
  });
});
