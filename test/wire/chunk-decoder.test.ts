// Decodes HTTP chunks, split at any point.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { ChunkDecoder } from "#src/wire/chunk-decoder.ts";

const bytes = (joinText: string): Uint8Array => new TextEncoder().encode(joinText);
const joinText = (parts: readonly Uint8Array[]): string => Buffer.concat(parts).toString();

/** Decodes these pieces. Returns the payload, the bytes after the body, and whether the body is complete. */
const decodePieces = (...pieces: string[]): [payload: string, rest: string, isOver: boolean] => {
  const decoder = new ChunkDecoder();
  const decoded = pieces.map((piece) => decoder.push(bytes(piece)));
  return [joinText(decoded.map(({ payload }) => payload)), joinText(decoded.map(({ rest }) => rest)), decoder.isOver];
};
const getFailure = (...pieces: string[]): string => {
  try {
    decodePieces(...pieces);
    return "";
  } catch (error) {
    return (error as Error).message;
  }
};

test("[TN-8] decodes chunks of any size, split anywhere, and returns the bytes after the body", () => {
  fc.assert(
    fc.property(fc.array(fc.string({ minLength: 1, maxLength: 40 })), fc.array(fc.nat(300)), (parts, cuts) => {
      const chunks = parts.map((part) => {
        const size = bytes(part).byteLength.toString(16);
        return `${size}; name="a"\r\n${part}\r\n`;
      });
      const body = Buffer.from(`${chunks.join("")}0\r\nx: y\r\n\r\nHTTP/1.1`);
      const positions = [...new Set(cuts.map((cut) => cut % body.length))].sort((a, b) => a - b);
      const decoder = new ChunkDecoder();
      const decoded = [...positions, body.length].map((end, i) => {
        const start = i === 0 ? 0 : (positions[i - 1] as number);
        return decoder.isOver
          ? { payload: new Uint8Array(), rest: body.subarray(start, end) }
          : decoder.push(body.subarray(start, end));
      });
      expect(joinText(decoded.map(({ payload }) => payload))).toBe(parts.join(""));
      expect(joinText(decoded.map(({ rest }) => rest))).toBe("HTTP/1.1");
      expect(decoder.isOver).toBe(true);
    }),
  );
});

test("[TN-8] joins one-byte chunks and rejects malformed or endless ones", () => {
  const decoder = new ChunkDecoder();
  const { payload } = decoder.push(bytes("1\r\na\r\n".repeat(40_000)));
  expect([payload.byteLength, decoder.isOver]).toEqual([40_000, false]);
  expect(decodePieces("0\r\n\r\n")).toEqual(["", "", true]);
  for (const malformed of ["\r\n", "x\r\n", "-1\r\n", "1\na\r\n", "1\r\nab\r\n", "1\r\na\n", "1 2\r\n"]) {
    expect([malformed, getFailure(malformed)]).toEqual([malformed, "The response's chunked encoding is malformed."]);
  }
  expect(getFailure("0".repeat(2_000))).toBe("A chunk size or the trailers are too long.");
  expect(
    getFailure(
      "0\r\n",
      ..."x"
        .repeat(70)
        .split("")
        .map(() => `${"y: z".repeat(250)}\r\n`),
    ),
  ).toBe("A chunk size or the trailers are too long.");
});
