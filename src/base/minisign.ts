// Signs and verifies release files in minisign's format (Ed25519 over the file's BLAKE2b), so that `minisign -V` and `slipway upgrade`
// accept the same signatures. Pure except for reading the file.
import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from "node:crypto";

const KEY_ID_BYTES = 8;
const KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;
const PKCS8 = Buffer.from("302e020100300506032b657004220420", "hex");
const SPKI = Buffer.from("302a300506032b6570032100", "hex");
const UNTRUSTED_COMMENT = "untrusted comment: ";
const TRUSTED_COMMENT = "trusted comment: ";

export class SignatureError extends Error {
  override readonly name = "SignatureError";
}

export type PublicKey = { readonly id: string; readonly key: KeyObject };

/** A signing key: its 32-byte seed and the public key. */
export type SigningKey = { readonly id: Buffer; readonly seed: Buffer; readonly publicKey: Buffer };

/** Returns the public key of a line such as `RWQ...`, or of a whole `.pub` file. Throws SignatureError. */
export const parsePublicKey = (text: string): PublicKey => {
  const bytes = Buffer.from(getLastLine(text), "base64");
  if (bytes.length !== 2 + KEY_ID_BYTES + KEY_BYTES || bytes.toString("latin1", 0, 2) !== "Ed") {
    throw new SignatureError("expected a public key of minisign: 56 characters that begin with RW");
  }
  return { id: bytes.toString("hex", 2, 10), key: toKeyObject(bytes.subarray(10)) };
};

/** Returns the line that `parsePublicKey` reads. */
export const printPublicKey = ({ id, publicKey }: SigningKey): string =>
  Buffer.concat([Buffer.from("Ed"), id, publicKey]).toString("base64");

/** Returns the BLAKE2b-512 of a file, which is what gets signed. */
export const digestFile = async (path: string): Promise<Buffer> => {
  const hasher = new Bun.CryptoHasher("blake2b512");
  for await (const chunk of Bun.file(path).stream()) hasher.update(chunk);
  return hasher.digest() as Buffer;
};

/** Returns the text of a `.minisig` for a file with this digest. The signature covers `comment` too. */
export const signDigest = (digest: Uint8Array, comment: string, signer: SigningKey): string => {
  const key = createPrivateKey({ key: Buffer.concat([PKCS8, signer.seed]), format: "der", type: "pkcs8" });
  const signature = sign(null, digest, key);
  const globalSignature = sign(null, Buffer.concat([signature, Buffer.from(comment)]), key);
  return [
    `${UNTRUSTED_COMMENT}verify with the public key ${printPublicKey(signer)}`,
    Buffer.concat([Buffer.from("ED"), signer.id, signature]).toString("base64"),
    TRUSTED_COMMENT + comment,
    globalSignature.toString("base64"),
    "",
  ].join("\n");
};

/**
 * Returns the trusted comment of a signature that one of `keys` made over `digest`. Throws SignatureError when the signature is of another
 * key or file, or the text is not a signature.
 */
export const verifyDigest = (digest: Uint8Array, text: string, keys: readonly PublicKey[]): string => {
  const [, line = "", trusted = "", last = ""] = text.split(/\r?\n/);
  const bytes = Buffer.from(line, "base64");
  if (bytes.length !== 2 + KEY_ID_BYTES + SIGNATURE_BYTES || !trusted.startsWith(TRUSTED_COMMENT)) {
    throw new SignatureError("the signature is not in minisign's format");
  }
  if (bytes.toString("latin1", 0, 2) !== "ED")
    throw new SignatureError("the signature is of a kind that is not supported");
  const id = bytes.toString("hex", 2, 10);
  const signer = keys.find((one) => one.id === id);
  if (!signer) throw new SignatureError(`the signature is of key ${formatKeyId(id)}, which is not trusted here`);
  const signature = bytes.subarray(10);
  const comment = trusted.slice(TRUSTED_COMMENT.length);
  const isFileSigned = verify(null, digest, signer.key, signature);
  const isCommentSigned = verify(
    null,
    Buffer.concat([signature, Buffer.from(comment)]),
    signer.key,
    Buffer.from(last, "base64"),
  );
  if (!isFileSigned || !isCommentSigned) throw new SignatureError("the signature does not match the file");
  return comment;
};

/** Returns the public key of a seed. */
export const derivePublicKey = (seed: Uint8Array): Buffer => {
  const key = createPrivateKey({ key: Buffer.concat([PKCS8, seed]), format: "der", type: "pkcs8" });
  return createPublicKey(key).export({ format: "der", type: "spki" }).subarray(SPKI.length);
};

const toKeyObject = (bytes: Uint8Array): KeyObject =>
  createPublicKey({ key: Buffer.concat([SPKI, bytes]), format: "der", type: "spki" });

/** Minisign displays IDs with the last byte first. */
const formatKeyId = (id: string): string => Buffer.from(id, "hex").reverse().toString("hex").toUpperCase();

const getLastLine = (text: string): string => text.trim().split(/\r?\n/).at(-1)?.trim() ?? "";
