// The secret key that signs releases, in minisign's file format. It is generated once and kept by the release manager. Keys that `minisign
// -G` created, with or without a password, can be read too.
import { generateKeyPairSync, scryptSync } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { derivePublicKey, printPublicKey, SignatureError, type SigningKey } from "#base/minisign.ts";

const ID_BYTES = 8;
const SEED_BYTES = 32;
/** Offsets of the file's parts: algorithms, salt, password limits, then the encrypted part. */
const OFFSETS = { kdf: 2, salt: 6, operations: 38, memory: 46, secret: 54 } as const;
const SECRET_BYTES = 158;
const SECRET_PART_BYTES = SECRET_BYTES - OFFSETS.secret;
const UNENCRYPTED = "\0\0";
const SCRYPT_BLOCK = 8;

/** Reads a secret key. Throws SignatureError if the file is invalid, or the password is wrong or missing. */
export const readSigningKey = (text: string, password: string | undefined): SigningKey => {
  const bytes = Buffer.from(text.trim().split(/\r?\n/).at(-1) ?? "", "base64");
  if (bytes.length !== SECRET_BYTES || bytes.toString("latin1", 0, 2) !== "Ed") {
    throw new SignatureError("expected a secret key of minisign");
  }
  const secret =
    bytes.toString("latin1", OFFSETS.kdf, OFFSETS.kdf + 2) === UNENCRYPTED
      ? bytes.subarray(OFFSETS.secret)
      : decryptKey(bytes, password);
  const [id, seed] = [secret.subarray(0, ID_BYTES), secret.subarray(ID_BYTES, ID_BYTES + SEED_BYTES)];
  const publicKey = derivePublicKey(seed);
  if (!publicKey.equals(secret.subarray(ID_BYTES + SEED_BYTES, ID_BYTES + 2 * SEED_BYTES))) {
    throw new SignatureError("the password of the release key is wrong, or the key is damaged");
  }
  return { id, seed, publicKey };
};

/** Reads the key from this file. If the file is missing, generates the key, and the public key in a file next to it. */
export const openSigningKey = (file: string, password: string | undefined): { key: SigningKey; isNew: boolean } => {
  if (existsSync(file)) return { key: readSigningKey(readFileSync(file, "utf8"), password), isNew: false };
  const key = generateSigningKey();
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(file, printSigningKey(key), { mode: 0o600, flag: "wx" });
  writeFileSync(`${file}.pub`, `untrusted comment: minisign public key of releases\n${printPublicKey(key)}\n`);
  return { key, isNew: true };
};

/** Generates a key. */
export const generateSigningKey = (): SigningKey => {
  const { privateKey } = generateKeyPairSync("ed25519");
  const seed = Buffer.from(privateKey.export({ format: "jwk" }).d as string, "base64url");
  const publicKey = derivePublicKey(seed);
  const id = (new Bun.CryptoHasher("blake2b256").update(publicKey).digest() as Buffer).subarray(0, ID_BYTES);
  return { id, seed, publicKey };
};

const printSigningKey = ({ id, seed, publicKey }: SigningKey): string => {
  const head = Buffer.alloc(OFFSETS.secret);
  head.write(`Ed${UNENCRYPTED}B2`, "latin1");
  const secret = Buffer.concat([id, seed, publicKey]);
  const checksum = new Bun.CryptoHasher("blake2b256").update("Ed").update(secret).digest() as Buffer;
  return `untrusted comment: minisign secret key of releases\n${Buffer.concat([head, secret, checksum]).toString("base64")}\n`;
};

const decryptKey = (bytes: Buffer, password: string | undefined): Buffer => {
  if (password === undefined)
    throw new SignatureError("the release key has a password: set SLIPWAY_RELEASE_KEY_PASSWORD");
  const { cost, parallel } = toScryptCost(
    Number(bytes.readBigUInt64LE(OFFSETS.operations)),
    Number(bytes.readBigUInt64LE(OFFSETS.memory)),
  );
  const pad = scryptSync(password, bytes.subarray(OFFSETS.salt, OFFSETS.operations), SECRET_PART_BYTES, {
    N: cost,
    r: SCRYPT_BLOCK,
    p: parallel,
    maxmem: 2 * 128 * cost * SCRYPT_BLOCK,
  });
  return Buffer.from(bytes.subarray(OFFSETS.secret).map((byte, i) => byte ^ (pad[i] as number)));
};

/** Converts limits for operations and memory to the parameters of scrypt, as libsodium does. */
const toScryptCost = (operations: number, memory: number): { cost: number; parallel: number } => {
  const limit = Math.max(operations, 32_768);
  const isLimitedByOperations = limit < memory / 32;
  const maxCost = isLimitedByOperations ? limit / (SCRYPT_BLOCK * 4) : memory / (SCRYPT_BLOCK * 128);
  let cost = 2;
  while (cost <= maxCost / 2) cost *= 2;
  const parallel = isLimitedByOperations ? 1 : Math.max(1, Math.floor(limit / 4 / cost / SCRYPT_BLOCK));
  return { cost, parallel };
};
