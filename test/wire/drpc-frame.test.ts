import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  decodeError,
  encodeError,
  encodePackets,
  KIND,
  type Kind,
  MAX_FRAME_DATA,
  MAX_PACKET,
  NO_BODY,
  type Packet,
} from "#src/wire/drpc/frame.ts";
import { PacketBudget, PacketParser, PacketReader } from "#src/wire/drpc/packets.ts";
import { hex, makePattern, splitBy } from "./support.ts";

const parse = (chunks: readonly Uint8Array[]): Packet[] => {
  const parser = new PacketParser();
  const packets: Packet[] = [];
  for (const chunk of chunks) {
    parser.push(chunk);
    for (let packet = parser.next(); packet; packet = parser.next()) packets.push(packet);
  }
  expect(parser.isInsidePacket).toBe(false);
  return packets;
};

const packet = (kind: Kind, message_id: number, body: Uint8Array = NO_BODY, stream_id = 1): Packet => ({
  kind,
  stream_id,
  message_id,
  body,
});

const ascii = (text: string): Uint8Array => new TextEncoder().encode(text);

describe("DRPC packets", () => {
  test("[WI-11] are written as the Go client writes them", () => {
    expect(encodePackets(packet(KIND.invoke, 1, ascii("/svc/Echo")))).toEqual(
      Uint8Array.of(0x03, 1, 1, 9, ...ascii("/svc/Echo")),
    );
    expect(encodePackets(packet(KIND.message, 2, ascii("hello")))).toEqual(hex("05 01 02 05 68 65 6c 6c 6f"));
    expect(encodePackets(packet(KIND.close_send, 3), packet(KIND.close, 4))).toEqual(hex("0d 01 03 00 0b 01 04 00"));
    expect(encodePackets(packet(KIND.cancel, 5))).toEqual(hex("89 01 05 00"));
    expect(encodePackets(packet(KIND.metadata, 300, NO_BODY, 128))).toEqual(hex("0f 80 01 ac 02 00"));
    expect(encodePackets(packet(KIND.error, 2, encodeError(12, "no")))).toEqual(
      hex("07 01 02 0a 000000000000000c 6e 6f"),
    );
    expect(decodeError(encodeError(12, "no"))).toMatchObject({ code: 12, message: "no" });
    expect(() => decodeError(hex("00 00"))).toThrow("without a code");
  });

  test("[WI-11] over 64 KiB are split into frames with the same IDs, only the last marked done", () => {
    const body = makePattern(2 * MAX_FRAME_DATA + 1);
    const bytes = encodePackets(packet(KIND.message, 7, body));
    const size = hex("80 80 04");
    const first = Uint8Array.of(0x04, 1, 7, ...size);
    expect(bytes.subarray(0, 6)).toEqual(first);
    expect(bytes.subarray(6 + MAX_FRAME_DATA, 12 + MAX_FRAME_DATA)).toEqual(first);
    expect(bytes.subarray(12 + 2 * MAX_FRAME_DATA)).toEqual(Uint8Array.of(0x05, 1, 7, 1, body.at(-1)!));
    expect(parse([bytes])).toEqual([packet(KIND.message, 7, body)]);
    expect(encodePackets(packet(KIND.message, 1, makePattern(MAX_FRAME_DATA)))[0]).toBe(0x05);
  });

  test("[WI-11] are decoded from chunks of any size", () => {
    const size = fc.oneof(
      fc.nat(20),
      fc.nat(3_000),
      fc.integer({ min: MAX_FRAME_DATA - 2, max: 2 * MAX_FRAME_DATA + 2 }),
    );
    const anyPacket = fc.tuple(fc.constantFrom<Kind>(1, 2, 3, 4, 5, 6, 7), size, fc.integer({ min: 1, max: 300 }));
    fc.assert(
      fc.property(
        fc.array(anyPacket, { maxLength: 8 }),
        fc.array(fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 70_000 })), { minLength: 1 }),
        (specs, sizes) => {
          let id = 0;
          const packets = specs.map(([kind, length, step], i) => {
            id += step;
            return packet(kind, id, makePattern(length, i), 1 + i);
          });
          expect(parse(splitBy(sizes.length > 1 ? sizes : [4_000])(encodePackets(...packets)))).toEqual(packets);
        },
      ),
      { numRuns: 60 },
    );
  });

  test("[WI-12] are refused if their IDs decrease or repeat, or their kind changes midway", () => {
    const packetTwo = encodePackets(packet(KIND.message, 2));
    expect(() => parse([packetTwo, encodePackets(packet(KIND.message, 1))])).toThrow("backwards");
    expect(() => parse([packetTwo, packetTwo])).toThrow("twice");
    expect(() => parse([encodePackets(packet(KIND.message, 1, NO_BODY, 2)), packetTwo])).toThrow("backwards");
    expect(() => parse([hex("04 01 01 01 aa"), hex("03 01 01 01 bb")])).toThrow("kind");
    // A new packet may start before the previous one is complete, which is then dropped.
    expect(parse([hex("04 01 01 01 aa"), hex("05 01 02 01 bb")])).toEqual([packet(KIND.message, 2, hex("bb"))]);
  });

  test("[WI-12] of an unknown kind are refused, unless marked as control", () => {
    expect(() => parse([hex("21 01 01 00")])).toThrow("kind");
    expect(parse([hex("a1 01 01 02 aabb"), hex("0d 01 02 00")])).toEqual([packet(KIND.close_send, 2)]);
  });

  test("[WI-12] over 4 MiB are refused, whether announced or accumulated, and never encoded", () => {
    const parser = new PacketParser();
    parser.push(hex("05 01 01 81 80 80 02"));
    expect(() => parser.next()).toThrow("4 MiB");
    const accumulating = new PacketParser();
    const half = hex("04 01 01 80 80 80 01");
    accumulating.push(Buffer.concat([half, new Uint8Array(2 * 1024 * 1024)]));
    expect(accumulating.next()).toBeUndefined();
    accumulating.push(Buffer.concat([half, new Uint8Array(2 * 1024 * 1024)]));
    expect(accumulating.next()).toBeUndefined();
    accumulating.push(hex("05 01 01 01 aa"));
    expect(() => accumulating.next()).toThrow("4 MiB");
    const largest = new Uint8Array(MAX_PACKET);
    expect(parse([encodePackets(packet(KIND.message, 1, largest))])[0]?.body.byteLength).toBe(MAX_PACKET);
    expect(() => encodePackets(packet(KIND.message, 1, new Uint8Array(MAX_PACKET + 1)))).toThrow("4 MiB");
  });

  test("[WI-12] with numbers of more than 53 bits are refused", () => {
    expect(() => parse([hex("05 ff ff ff ff ff ff ff ff ff 01")])).toThrow("too large");
    expect(() => parse([hex("05 80 80 80 80 80 80 80 80 80 80 01")])).toThrow("too large");
  });

  test("[WI-12] truncated by the end of the stream are an error", async () => {
    const chunks = [hex("05 01 01 05 68 65")];
    const reader = new PacketReader({ read: async () => chunks.shift() });
    await expect(reader.next()).rejects.toMatchObject({ failure: "closed" });
  });

  test("[WI-19] that are refused are removed from the memory budget", async () => {
    const chunks = [hex("04 01 01 03 aa bb cc"), hex("05 01 01 05 68 65")];
    const reader = new PacketReader({ read: async () => chunks.shift() }, new PacketBudget(4));
    await expect(reader.next()).rejects.toMatchObject({ failure: "too_large" });
    expect(await reader.next()).toBeUndefined();
  });
});
