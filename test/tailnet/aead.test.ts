// The WebAssembly that encrypts data packets: compared with another implementation, and its source with the committed binary.
import { expect, test } from "bun:test";
import { chacha20poly1305 } from "@noble/ciphers/chacha.js";
import { HEAD_BYTES, MAX_PLAIN_BYTES, openSealed, seal, TAG_BYTES } from "#src/tailnet/aead/aead.ts";
import { compileAead } from "#src/tailnet/aead/build.ts";
import { AEAD_CODE } from "#src/tailnet/aead/code.ts";
import { randomFrom } from "#test/support/random.ts";

const toNonce = (counter: number): Uint8Array => {
  const nonce = new Uint8Array(12);
  new DataView(nonce.buffer).setBigUint64(4, BigInt(counter), true);
  return nonce;
};

test("[TL-18] encrypts and decrypts like another implementation for all lengths and counters, and rejects altered packets", () => {
  const random = randomFrom(18);
  const bytes = (length: number) => Uint8Array.from({ length }, () => random() * 256);
  for (let i = 0; i < 1_500; i += 1) {
    const length = i < 1_300 ? i : Math.floor(random() * 60_000);
    // Limbs with all bits set produce the longest carries.
    const plain = i % 3 === 0 ? new Uint8Array(length).fill(255) : bytes(length);
    const [key, counter] = [bytes(32), Math.floor(random() * 2 ** (i % 53))];
    const expected = chacha20poly1305(key, toNonce(counter)).encrypt(plain);
    const head = bytes(HEAD_BYTES);
    const message = seal(head, { key, counter, plain, padded: length });
    expect(Buffer.compare(message, Buffer.concat([head, expected]))).toBe(0);
    expect(Buffer.compare(openSealed(key, counter, expected) as Uint8Array, plain)).toBe(0);
    const position = Math.floor(random() * expected.byteLength);
    expected[position] = (expected[position] as number) ^ (1 << Math.floor(random() * 8));
    expect(openSealed(key, counter, expected)).toBeUndefined();
  }
});

test("[TL-18] pads with zeros only, and refuses packets that are too large or too short", () => {
  const key = new Uint8Array(32).fill(7);
  const head = new Uint8Array(HEAD_BYTES);
  seal(head, { key, counter: 1, plain: new Uint8Array(96).fill(255), padded: 96 });
  const message = seal(head, { key, counter: 2, plain: Uint8Array.of(1, 2, 3), padded: 16 });
  const opened = openSealed(key, 2, message.subarray(HEAD_BYTES));
  expect([...(opened ?? [])]).toEqual([1, 2, 3, ...Array(13).fill(0)]);
  expect(openSealed(key, 2, new Uint8Array(TAG_BYTES - 1))).toBeUndefined();
  expect(openSealed(key, 2, new Uint8Array(MAX_PLAIN_BYTES + TAG_BYTES + 1))).toBeUndefined();
  const tooLarge = { key, counter: 3, plain: new Uint8Array(MAX_PLAIN_BYTES + 100), padded: MAX_PLAIN_BYTES + 112 };
  expect(() => seal(head, tooLarge)).toThrow(RangeError);
});

test("[TL-18] the committed code equals the compiled source", async () => {
  expect(Buffer.from(await compileAead()).toString("base64")).toBe(AEAD_CODE);
});
