import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { encodeHeader, FLAG, FRAME, type FrameHeader, FrameParser, type FrameType } from "#src/wire/yamux-frame.ts";
import { hex, makePattern } from "./support.ts";

type DecodedFrame = { header: FrameHeader; payload: number[]; ended: boolean };

const parse = (chunks: readonly Uint8Array[]): DecodedFrame[] => {
  const frames: DecodedFrame[] = [];
  const parser = new FrameParser({
    header: (header) => frames.push({ header, payload: [], ended: header.type !== FRAME.data || header.length === 0 }),
    payload: (piece, last) => {
      const frame = frames.at(-1)!;
      frame.payload.push(...piece);
      frame.ended = last;
    },
  });
  for (const chunk of chunks) parser.push(chunk);
  return frames;
};

describe("yamux frames", () => {
  test("[WI-4] are twelve bytes, big endian", () => {
    expect(encodeHeader(FRAME.window, FLAG.syn, 1, 0)).toEqual(hex("00 01 0001 00000001 00000000"));
    expect(encodeHeader(FRAME.data, FLAG.fin, 0x01020304, 0x05060708)).toEqual(hex("00 00 0004 01020304 05060708"));
    expect(encodeHeader(FRAME.ping, FLAG.ack, 0, 0xffffffff)).toEqual(hex("00 02 0002 00000000 ffffffff"));
    expect(encodeHeader(FRAME.go_away, 0, 0, 1)).toEqual(hex("00 03 0000 00000000 00000001"));
    expect(() => encodeHeader(FRAME.data, 0, 1, 2 ** 32)).toThrow(RangeError);
  });

  test("[WI-4] of unknown versions and types are refused", () => {
    expect(() => parse([hex("01 00 0000 00000001 00000000")])).toThrow("version");
    expect(() => parse([hex("00 04 0000 00000001 00000000")])).toThrow("type");
  });

  test("[WI-4] are decoded from chunks of any size", () => {
    const frame = fc.record({
      type: fc.constantFrom<FrameType>(0, 1, 2, 3),
      flags: fc.nat(0xffff),
      id: fc.nat(0xffffffff),
      size: fc.nat(300),
    });
    fc.assert(
      fc.property(
        fc.array(frame, { maxLength: 20 }),
        fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1 }),
        (frames, sizes) => {
          const encoded = Buffer.concat(
            frames.flatMap(({ type, flags, id, size }, i) => [
              encodeHeader(type, flags, id, size),
              type === FRAME.data ? makePattern(size, i + 1) : new Uint8Array(0),
            ]),
          );
          const chunks: Uint8Array[] = [];
          for (let position = 0, i = 0; position < encoded.byteLength; i++) {
            const size = sizes[i % sizes.length] ?? 1;
            chunks.push(encoded.subarray(position, position + size));
            position += size;
          }
          const decoded = parse(chunks);
          expect(decoded).toEqual(parse([encoded]));
          expect(decoded).toEqual(
            frames.map(({ type, flags, id, size }, i) => ({
              header: { type, flags, stream_id: id, length: size },
              payload: type === FRAME.data ? [...makePattern(size, i + 1)] : [],
              ended: true,
            })),
          );
        },
      ),
      { numRuns: 200 },
    );
  });
});
