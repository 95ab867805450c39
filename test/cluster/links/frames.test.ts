// Frames between nodes, split at every byte and at random.
import { expect, test } from "bun:test";
import { type Frame, FrameReader, KIND, MAX_FRAME_BYTES, toFrame } from "#src/cluster/node-frames.ts";
import { randomFrom } from "#test/support/random.ts";

const seed = Number(Bun.env.SLIPWAY_TEST_SEED ?? Date.now() % 1_000_000);

type PlainFrame = { kind: number; id: number; text: string };
const toPlain = ({ kind, id, body }: Frame): PlainFrame => ({ kind, id, text: Buffer.from(body).toString("latin1") });

const SENT: PlainFrame[] = [
  { kind: KIND.call, id: 1, text: '{"service":"one"}' },
  { kind: KIND.alive, id: 0, text: "" },
  { kind: KIND.data, id: 2 ** 32 - 1, text: "\0\xff" },
  { kind: KIND.answer, id: 7, text: "" },
];

const encodeFrames = (sent: readonly PlainFrame[]): Buffer =>
  Buffer.concat(sent.map(({ kind, id, text }) => toFrame(kind as 0, id, Buffer.from(text, "latin1"))));

test("[CP-30] frames that are split at any byte decode to the same frames", () => {
  const bytes = encodeFrames(SENT);
  for (let cut = 0; cut <= bytes.length; cut++) {
    const reader = new FrameReader();
    const decoded = [bytes.subarray(0, cut), bytes.subarray(cut)].flatMap((piece) => {
      const frames = reader.readFrames(Buffer.from(piece));
      return frames === "wrong" ? [] : frames.map(toPlain);
    });
    expect(decoded).toEqual(SENT);
  }
});

test(`[CP-30] any frames in any pieces are the same frames, seed ${seed}`, () => {
  const random = randomFrom(seed);
  const randomBelow = (limit: number): number => Math.floor(random() * limit);
  for (let round = 0; round < 200; round++) {
    const sent = Array.from({ length: 1 + randomBelow(12) }, () => ({
      kind: randomBelow(9),
      id: randomBelow(2 ** 32),
      text: String.fromCharCode(randomBelow(256)).repeat(random() < 0.1 ? randomBelow(100_000) : randomBelow(40)),
    }));
    const bytes = encodeFrames(sent);
    const reader = new FrameReader();
    const decoded: PlainFrame[] = [];
    for (let offset = 0; offset < bytes.length; ) {
      const piece = Buffer.from(bytes.subarray(offset, offset + 1 + randomBelow(random() < 0.5 ? 12 : 70_000)));
      offset += piece.length;
      const frames = reader.readFrames(piece);
      if (frames === "wrong") throw new Error("these are frames");
      decoded.push(...frames.map(toPlain));
      // The input buffer is reused.
      piece.fill(0);
    }
    expect(decoded).toEqual(sent);
  }
});

test("[CP-32] a frame above the maximum length is refused", () => {
  const head = Buffer.alloc(9);
  head.writeUInt32BE(MAX_FRAME_BYTES + 1, 0);
  expect(new FrameReader().readFrames(head)).toBe("wrong");
});
