// NaCl boxes: X25519 from node:crypto, XSalsa20-Poly1305 from @noble/ciphers. Used by discovery and by the relay's handshake, where opening
// a box proves that a client has the private key of its public key (facts/wire 3.2). Rejects keys that yield no shared secret. [TL-1]
import { createPrivateKey, createPublicKey, diffieHellman } from "node:crypto";
import { hsalsa, xsalsa20poly1305 } from "@noble/ciphers/salsa.js";
import { generateBytes } from "#base/ids.ts";

export const KEY_BYTES = 32;
export const NONCE_BYTES = 24;

// The DER prefixes of raw X25519 keys (RFC 8410).
const PRIVATE_HEAD = Buffer.from("302e020100300506032b656e04220420", "hex");
const PUBLIC_HEAD = Buffer.from("302a300506032b656e032100", "hex");

/** "expand 32-byte k", as words. */
const SIGMA = toWords(new TextEncoder().encode("expand 32-byte k"));

export interface KeyPair {
  readonly secret: Uint8Array;
  readonly public: Uint8Array;
}

/** Returns the key pair of these 32 secret bytes; a new one by default. */
export const createKeyPair = (secret: Uint8Array = generateBytes(KEY_BYTES)): KeyPair => {
  const pem = createPrivateKey(toPrivateKey(secret)).export({ format: "pem", type: "pkcs8" });
  const der = createPublicKey(pem).export({ format: "der", type: "spki" });
  return { secret, public: new Uint8Array(der.subarray(PUBLIC_HEAD.length)) };
};

/** Returns the X25519 shared point of two keys, 32 bytes; undefined for a public key that yields no secret. */
export const computeSharedPoint = (secret: Uint8Array, peer: Uint8Array): Uint8Array | undefined => {
  try {
    const publicKey = createPublicKey({ key: Buffer.concat([PUBLIC_HEAD, peer]), format: "der", type: "spki" });
    return diffieHellman({ privateKey: createPrivateKey(toPrivateKey(secret)), publicKey });
  } catch {
    return undefined;
  }
};

/** Returns the shared key of two keys for `seal` and `open`, 32 bytes; undefined for a public key that yields no secret. */
export const deriveSharedKey = (secret: Uint8Array, peer: Uint8Array): Uint8Array | undefined => {
  const point = computeSharedPoint(secret, peer);
  if (!point) return undefined;
  const out = new Uint32Array(KEY_BYTES / 4);
  hsalsa(SIGMA, toWords(point), new Uint32Array(4), out);
  return new Uint8Array(out.buffer);
};

/** Encrypts with a shared key. Returns the nonce followed by the box, as frames contain them. */
export const seal = (
  shared: Uint8Array,
  plain: Uint8Array,
  nonce: Uint8Array = generateBytes(NONCE_BYTES),
): Uint8Array => Buffer.concat([nonce, xsalsa20poly1305(shared, nonce).encrypt(plain)]);

/** Decrypts a nonce and a box; undefined if they were modified or encrypted with another key. */
export const open = (shared: Uint8Array, sealed: Uint8Array): Uint8Array | undefined => {
  if (sealed.byteLength < NONCE_BYTES) return undefined;
  try {
    return xsalsa20poly1305(shared, sealed.slice(0, NONCE_BYTES)).decrypt(sealed.slice(NONCE_BYTES));
  } catch {
    return undefined;
  }
};

const toPrivateKey = (secret: Uint8Array) =>
  ({ key: Buffer.concat([PRIVATE_HEAD, secret]), format: "der", type: "pkcs8" }) as const;

/** Returns bytes as little-endian words; a copy, so that alignment does not matter. */
function toWords(bytes: Uint8Array): Uint32Array {
  return new Uint32Array(new Uint8Array(bytes).buffer);
}
