// ChaCha20-Poly1305 for data packets, without additional data, in the WebAssembly of build.ts. One instance per process is enough: every
// call is synchronous, so callers never use its memory concurrently. Verified against @noble/ciphers in test/tailnet/aead.test.ts. [TL-18]
import { AEAD_CODE } from "./code.ts";

export const TAG_BYTES = 16;
/** Maximum length of a packet; longer ones throw RangeError. */
export const MAX_PLAIN_BYTES = 65 * 1024;

/** Size of the unencrypted header before the encrypted part. */
export const HEAD_BYTES = 16;

/** Offsets in the program's memory; see build.ts. */
const COUNTER = 36;
const DATA = 1024;

type Program = { seal(length: number): void; open(length: number): number; memory: WebAssembly.Memory };

const load = () => {
  const module = new WebAssembly.Module(Buffer.from(AEAD_CODE, "base64"));
  const program = new WebAssembly.Instance(module, {}).exports as unknown as Program;
  const bytes = new Uint8Array(program.memory.buffer);
  return { program, bytes, view: new DataView(program.memory.buffer) };
};

// Loaded with the first packet: a server without peers does not need it.
let loaded: ReturnType<typeof load> | undefined;

/**
 * Copies a key, a counter and data into the program's memory. The nonce is 4 zero bytes and the counter, little-endian (facts/tailnet-peer
 * 4).
 */
const loadInput = (key: Uint8Array, counter: number, data: Uint8Array) => {
  if (data.byteLength > MAX_PLAIN_BYTES + TAG_BYTES) throw new RangeError("the packet is too large");
  loaded ??= load();
  loaded.bytes.set(key, 0);
  loaded.view.setUint32(COUNTER, counter >>> 0, true);
  loaded.view.setUint32(COUNTER + 4, Math.floor(counter / 2 ** 32), true);
  loaded.bytes.set(data, DATA);
  return loaded;
};

/**
 * Encrypts `plain`, padded with zeros to `padded` bytes. Returns `head` (HEAD_BYTES long), the ciphertext and the tag. `counter` is a safe
 * integer. The result is valid until the next call of any function here, so the caller must copy or send it before.
 */
export const seal = (
  head: Uint8Array,
  { key, counter, plain, padded }: { key: Uint8Array; counter: number; plain: Uint8Array; padded: number },
): Uint8Array => {
  const { program, bytes } = loadInput(key, counter, plain);
  if (padded > plain.byteLength) bytes.fill(0, DATA + plain.byteLength, DATA + padded);
  bytes.set(head, DATA - HEAD_BYTES);
  program.seal(padded);
  return bytes.subarray(DATA - HEAD_BYTES, DATA + padded + TAG_BYTES);
};

/** Decrypts data into a new buffer; undefined for data that was not encrypted with this key and counter. */
export const openSealed = (key: Uint8Array, counter: number, sealed: Uint8Array): Uint8Array | undefined => {
  const length = sealed.byteLength - TAG_BYTES;
  if (length < 0 || length > MAX_PLAIN_BYTES) return undefined;
  const { program, bytes } = loadInput(key, counter, sealed);
  return program.open(length) === 1 ? bytes.slice(DATA, DATA + length) : undefined;
};
