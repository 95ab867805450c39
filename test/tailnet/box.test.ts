// Compares boxes with libsodium's test vectors.
import { expect, test } from "bun:test";
import { createKeyPair, deriveSharedKey, open, seal } from "#src/tailnet/box.ts";
import vectors from "./nacl-vectors.json" with { type: "json" };

const bytes = (hex: string): Uint8Array => new Uint8Array(Buffer.from(hex, "hex"));
const hex = (bytes: Uint8Array | undefined): string | undefined => bytes && Buffer.from(bytes).toString("hex");

test.each(vectors.boxes)("[TL-1] a box equals libsodium's byte for byte: $name", (vector) => {
  const sender = createKeyPair(bytes(vector.sender_secret));
  const receiver = createKeyPair(bytes(vector.receiver_secret));
  expect([hex(sender.public), hex(receiver.public)]).toEqual([vector.sender_public, vector.receiver_public]);
  const shared = deriveSharedKey(sender.secret, receiver.public) as Uint8Array;
  expect(hex(shared)).toBe(vector.shared);
  expect(hex(deriveSharedKey(receiver.secret, sender.public))).toBe(vector.shared);
  expect(hex(seal(shared, bytes(vector.plain), bytes(vector.nonce)))).toBe(vector.nonce + vector.box);
  expect(hex(open(shared, bytes(vector.nonce + vector.box)))).toBe(vector.plain);
});

test("[TL-1] does not open an altered or truncated box or another recipient's box, and refuses an invalid public key", () => {
  const [sender, receiver, outsider] = [createKeyPair(), createKeyPair(), createKeyPair()];
  const shared = deriveSharedKey(sender.secret, receiver.public) as Uint8Array;
  const sealed = seal(shared, new TextEncoder().encode("hello"));
  for (let position = 0; position < sealed.byteLength; position += 1) {
    const altered = sealed.slice();
    altered[position] = (altered[position] as number) ^ 1;
    expect(open(shared, altered)).toBeUndefined();
    expect(open(shared, sealed.subarray(0, position))).toBeUndefined();
  }
  expect(open(deriveSharedKey(outsider.secret, receiver.public) as Uint8Array, sealed)).toBeUndefined();
  expect(deriveSharedKey(sender.secret, new Uint8Array(32))).toBeUndefined();
  expect(deriveSharedKey(sender.secret, new Uint8Array(31))).toBeUndefined();
});
