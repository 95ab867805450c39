// Generates identifiers and secrets. UUIDs identify resources in the API; short random strings are credentials.
import { randomBytes, timingSafeEqual } from "node:crypto";
import { customAlphabet } from "nanoid";

const ALPHANUMERIC = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export const NIL_UUID = "00000000-0000-0000-0000-000000000000";

/** Returns a random (version 4) UUID in lower case. */
export const uuid = (): string => crypto.randomUUID();

/** Returns whether the text has the canonical 36-character form, in any letter case. */
export const isUuid = (text: string): boolean => UUID.test(text);

/** The public half of an API key: 10 letters and digits (facts/platform 8.2). */
export const keyId = customAlphabet(ALPHANUMERIC, 10);

/** The secret half of an API key: 22 letters and digits, 131 bits (facts/platform 8.2). */
export const keySecret = customAlphabet(ALPHANUMERIC, 22);

/** A one-time secret for links, 43 letters and digits, 256 bits. */
export const linkToken = customAlphabet(ALPHANUMERIC, 43);

/** Returns random bytes for keys and nonces. */
export const generateBytes = (count: number): Uint8Array => new Uint8Array(randomBytes(count));

/** Returns the SHA-256 of a secret in hex, the only form in which secrets are stored. */
export const sha256 = (secret: string | Uint8Array): string =>
  new Bun.CryptoHasher("sha256").update(secret).digest("hex");

/** Compares two hex digests in constant time. */
export const isSameDigest = (a: string, b: string): boolean => {
  const x = Buffer.from(a, "hex");
  const y = Buffer.from(b, "hex");
  return x.length === y.length && x.length > 0 && timingSafeEqual(x, y);
};

/** Returns the 16 raw bytes of a UUID, as used in the agent protocol (facts/wire 1.5). */
export const uuidToBytes = (id: string): Uint8Array => new Uint8Array(Buffer.from(id.replaceAll("-", ""), "hex"));

/** Returns the canonical text of 16 raw bytes. Throws unless there are exactly 16. */
export const uuidFromBytes = (bytes: Uint8Array): string => {
  if (bytes.length !== 16) throw new RangeError(`a UUID has 16 bytes, got ${bytes.length}`);
  const hex = Buffer.from(bytes).toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
};

/** Returns a version 8 UUID derived from a text: always the same, and it does not reveal the text. */
export const deriveUuid = (text: string): string => {
  const bytes = Buffer.from(sha256(text), "hex").subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return uuidFromBytes(bytes);
};
