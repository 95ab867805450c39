// Cryptographic primitives of WireGuard's handshake (whitepaper 5.4; facts/tailnet-peer 4). BLAKE2s and its HMAC are native. The keyed
// 16-byte MAC and ChaCha20-Poly1305 with additional data are from @noble, which is fast enough for a handshake. Data packets use
// ../aead/aead.ts. [TL-18]
import { createHash } from "node:crypto";
import { chacha20poly1305, xchacha20poly1305 } from "@noble/ciphers/chacha.js";
import { blake2s } from "@noble/hashes/blake2.js";

export const HASH_BYTES = 32;
export const MAC_BYTES = 16;
const BLOCK_BYTES = 64;
const ZERO_NONCE = new Uint8Array(12);

/** Returns the BLAKE2s hash of the joined parts. */
export const hash = (...parts: readonly Uint8Array[]): Uint8Array => {
  const hasher = createHash("blake2s256");
  for (const part of parts) hasher.update(part);
  return new Uint8Array(hasher.digest());
};

/** Returns the HMAC (RFC 2104) with BLAKE2s. Keys have at most 32 bytes here. */
const hmac = (key: Uint8Array, ...parts: readonly Uint8Array[]): Uint8Array => {
  const inner = new Uint8Array(BLOCK_BYTES).fill(0x36);
  const outer = new Uint8Array(BLOCK_BYTES).fill(0x5c);
  for (const [i, byte] of key.entries()) {
    inner[i] = 0x36 ^ byte;
    outer[i] = 0x5c ^ byte;
  }
  return hash(outer, hash(inner, ...parts));
};

/** Derives `n` keys of 32 bytes from a chaining key and an input (KDF_n of the whitepaper). */
export const kdf = (n: 1 | 2 | 3, chain: Uint8Array, input: Uint8Array): [Uint8Array, Uint8Array, Uint8Array] => {
  const extracted = hmac(chain, input);
  const keys: Uint8Array[] = [];
  for (let i = 1; i <= n; i += 1) keys.push(hmac(extracted, keys[i - 2] ?? EMPTY, Uint8Array.of(i)));
  return keys as [Uint8Array, Uint8Array, Uint8Array];
};

export const EMPTY = new Uint8Array(0);

/** Returns the keyed BLAKE2s hash, 16 bytes. */
export const mac = (key: Uint8Array, bytes: Uint8Array): Uint8Array => blake2s(bytes, { key, dkLen: MAC_BYTES });

/** Encrypts one field of a handshake. The nonce is 0, because each key encrypts only one field. */
export const sealField = (key: Uint8Array, plain: Uint8Array, ad: Uint8Array): Uint8Array =>
  chacha20poly1305(key, ZERO_NONCE, ad).encrypt(plain);

/** Decrypts a field; undefined if it was not encrypted with this key and additional data. */
export const openField = (key: Uint8Array, sealed: Uint8Array, ad: Uint8Array): Uint8Array | undefined =>
  tryOpen(() => chacha20poly1305(key, ZERO_NONCE, ad).decrypt(sealed));

/** Encrypts a cookie. The nonce must be 24 random bytes. */
export const sealCookie = (key: Uint8Array, nonce: Uint8Array, cookie: Uint8Array, ad: Uint8Array): Uint8Array =>
  xchacha20poly1305(key, nonce, ad).encrypt(cookie);

/** Decrypts a cookie; undefined if it was not encrypted with this key and additional data. */
export const openCookie = (
  key: Uint8Array,
  nonce: Uint8Array,
  sealed: Uint8Array,
  ad: Uint8Array,
): Uint8Array | undefined => tryOpen(() => xchacha20poly1305(key, nonce, ad).decrypt(sealed));

const tryOpen = (open: () => Uint8Array): Uint8Array | undefined => {
  try {
    return open();
  } catch {
    return undefined;
  }
};

/** Compares bytes in constant time. */
export const equal = (a: Uint8Array, b: Uint8Array): boolean => {
  let different = a.byteLength ^ b.byteLength;
  for (let i = 0; i < a.byteLength; i += 1) different |= (a[i] as number) ^ (b[i] ?? 0);
  return different === 0;
};

export const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);
