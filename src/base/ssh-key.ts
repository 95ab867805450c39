// Ed25519 key pairs in the formats of OpenSSH and git servers (openssh-key-v1, authorized_keys). Used for the key pair that workspaces
// present to git servers, and for the host keys of their SSH servers.
import { createHash, generateKeyPairSync } from "node:crypto";

export type SshKeyPair = {
  /** PEM with a trailing newline, which OpenSSH requires. */
  readonly private_key: string;
  /** `ssh-ed25519 <base64>`, without a comment. */
  readonly public_key: string;
};

const TYPE = "ssh-ed25519";
/** Unencrypted keys are padded to the block size of the cipher `none`. */
const BLOCK = 8;

/** Generates a key pair. */
export const makeSshKeyPair = (): SshKeyPair => {
  const { d = "", x = "" } = generateKeyPairSync("ed25519").privateKey.export({ format: "jwk" });
  const seed = Buffer.from(d, "base64url");
  const point = Buffer.from(x, "base64url");
  const publicBlob = Buffer.concat([toField(TYPE), toField(point)]);
  // Two equal numbers let a reader check that decryption succeeded. This key is not encrypted, so the number can be any.
  const check = createHash("sha256").update(seed).digest().subarray(0, 4);
  const comment = toField("");
  const secret = pad(Buffer.concat([check, check, publicBlob, toField(Buffer.concat([seed, point])), comment]));
  const magic = Buffer.from("openssh-key-v1\0");
  // Cipher, key derivation and its options. No encryption here, because the server encrypts the whole file.
  const encryption = [toField("none"), toField("none"), toField("")];
  const file = Buffer.concat([magic, ...encryption, uint32(1), toField(publicBlob), toField(secret)]);
  const lines = file.toString("base64").match(/.{1,70}/g) ?? [];
  return {
    private_key: `-----BEGIN OPENSSH PRIVATE KEY-----\n${lines.join("\n")}\n-----END OPENSSH PRIVATE KEY-----\n`,
    public_key: `${TYPE} ${publicBlob.toString("base64")}`,
  };
};

const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};

const toField = (value: string | Buffer): Buffer => {
  const bytes = Buffer.from(value);
  return Buffer.concat([uint32(bytes.length), bytes]);
};

const pad = (bytes: Buffer): Buffer => {
  const missing = (BLOCK - (bytes.length % BLOCK)) % BLOCK;
  return Buffer.concat([bytes, Buffer.from(Array.from({ length: missing }, (_, i) => i + 1))]);
};
