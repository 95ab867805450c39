// Encrypts secrets that must be readable again (private keys, tokens of other services) before they are stored: AES-256-GCM with a key in a
// separate file next to the database, so that a copy of the database alone is useless. Decryption fails for data that was altered,
// encrypted with another key, or encrypted for another context.
import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes } from "node:crypto";
import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { flush } from "./system/flush.ts";

const ALGORITHM = "aes-256-gcm";
const KEY_BYTES = 32;
/** With random nonces, 2^32 encryptions under one key are safe; a server makes thousands. */
export const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const VERSION = "v1";

/** Returns a random nonce for a single encryption. */
export const generateNonce = (): Uint8Array<ArrayBuffer> => new Uint8Array(randomBytes(NONCE_BYTES));

/** Thrown when a value cannot be decrypted; the message gives the reason and contains no secret. */
export class UnsealError extends Error {
  override readonly name = "UnsealError";
}

/** Thrown when the key file is missing or damaged; the message says what to do. */
export class EncryptionKeyError extends Error {
  override readonly name = "EncryptionKeyError";
}

export class Encryption {
  readonly #key: Uint8Array;
  /** Identifies the key without revealing anything about it. */
  readonly #name: string;

  constructor(key: Uint8Array) {
    if (key.length !== KEY_BYTES) throw new RangeError(`an encryption key has ${KEY_BYTES} bytes`);
    this.#key = key;
    this.#name = createHash("sha256").update("slipway key name").update(key).digest("hex").slice(0, 8);
  }

  /**
   * Returns `v1.<key name>.<base64url of nonce, ciphertext and tag>`. It can only be decrypted with the same context, such as
   * `git_ssh_key:<user id>`.
   */
  seal(secret: string, context: string): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.#key, nonce).setAAD(this.#toAssociatedData(context));
    const sealed = Buffer.concat([nonce, cipher.update(secret, "utf8"), cipher.final(), cipher.getAuthTag()]);
    return `${this.prefix}${sealed.toString("base64url")}`;
  }

  /** Returns the prefix of everything encrypted with this key. */
  get prefix(): string {
    return `${VERSION}.${this.#name}.`;
  }

  /** Returns the secret. Throws `UnsealError`. */
  open(envelope: string, context: string): string {
    const [version, name, body = ""] = envelope.split(".");
    if (version !== VERSION) throw new UnsealError("the sealed value has an unknown form");
    if (name !== this.#name) throw new UnsealError("the value was encrypted with another key than encryption.key");
    const bytes = Buffer.from(body, "base64url");
    if (bytes.length < NONCE_BYTES + TAG_BYTES) throw new UnsealError("the sealed value is cut off");
    const decipher = createDecipheriv(ALGORITHM, this.#key, bytes.subarray(0, NONCE_BYTES))
      .setAAD(this.#toAssociatedData(context))
      .setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      const text = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
      return Buffer.concat([text, decipher.final()]).toString("utf8");
    } catch {
      throw new UnsealError("the sealed value was altered or is from another context");
    }
  }

  /** Returns a secret in the form of a UUID (122 bits) that is always the same for a context and reveals nothing about other contexts. */
  deriveUuid(context: string): string {
    const hex = createHmac("sha256", this.#key).update(`derive\0${context}`).digest("hex");
    const variant = "89ab"[Number.parseInt(hex.charAt(16), 16) & 3];
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
  }

  #toAssociatedData(context: string): Buffer {
    return Buffer.from(`${VERSION}\0${context}`);
  }
}

export const getKeyPath = (directory: string): string => join(directory, "encryption.key");

export const hasKey = (directory: string): boolean => existsSync(getKeyPath(directory));

/** Opens the key of a data directory. Creates one if none exists, readable only by the server's user. Throws `EncryptionKeyError`. */
export const openEncryption = (directory: string): Encryption => {
  const file = getKeyPath(directory);
  const text = readIfExists(file);
  if (text === undefined) return new Encryption(makeKey(directory, file));
  if (!/^[0-9a-f]{64}\s*$/.test(text))
    throw new EncryptionKeyError(`${file} is damaged: it must contain 64 hexadecimal digits`);
  chmodSync(file, 0o600);
  return new Encryption(Buffer.from(text.trim(), "hex"));
};

/** Parses a key of 64 hexadecimal digits. Throws `EncryptionKeyError`. */
export const parseEncryptionKey = (digits: string): Encryption => {
  if (!/^[0-9a-f]{64}\s*$/.test(digits))
    throw new EncryptionKeyError(
      "encryption_key must be 64 hexadecimal digits, such as printed by `openssl rand -hex 32`",
    );
  return new Encryption(Buffer.from(digits.trim(), "hex"));
};

const readIfExists = (file: string): string | undefined => {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if ((error as { code?: unknown }).code === "ENOENT") return undefined;
    throw error;
  }
};

/** Writes a given key to the data directory. Throws `EncryptionKeyError`. */
export const writeKey = (directory: string, digits: string): void => {
  parseEncryptionKey(digits);
  makeKey(directory, getKeyPath(directory), Buffer.from(digits.trim(), "hex"));
};

/** Flushes the file and its directory entry before the key is used, because losing the key would lose every encrypted value. */
const makeKey = (directory: string, file: string, key: Uint8Array = randomBytes(KEY_BYTES)): Uint8Array => {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const temporary = `${file}.new`;
  const handle = openSync(temporary, "w", 0o600);
  try {
    writeSync(handle, `${Buffer.from(key).toString("hex")}\n`);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  renameSync(temporary, file);
  flush(directory);
  return key;
};
