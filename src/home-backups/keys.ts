// The keys of home backups. All are derived from the recovery key, which alone can decrypt the backups on any machine.
import { hkdfSync } from "node:crypto";
import { promisify } from "node:util";
import { constants, zstdCompress, zstdDecompress } from "node:zlib";
import { generateNonce, NONCE_BYTES } from "#base/encryption.ts";
import { HomeBackupError } from "./error.ts";

const SALT = "slipway home backups";
const KEY_BYTES = 32;
/** The fastest level, because most files in homes are compressed already or do not compress well. */
const LEVEL = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

export type Keys = {
  /** The password of restic's repositories. */
  readonly password: string;
  /** Determines the chunk boundaries. A secret, so that chunk sizes reveal nothing about the content. */
  readonly gear: Int32Array;
  /** Returns a name for the bytes that depends on their content and does not reveal it. */
  name(bytes: Uint8Array<ArrayBuffer>): Promise<string>;
  /** Compresses and encrypts. The result can be decrypted only with the same `location`. */
  seal(bytes: Uint8Array, location: string): Promise<Uint8Array<ArrayBuffer>>;
  /** Decrypts at most `max` bytes. Throws HomeBackupError. */
  open(sealed: Uint8Array, location: string, max: number): Promise<Uint8Array<ArrayBuffer>>;
};

/** Derives the keys. `recovery_key` has the form that parseRecoveryKey returns. */
export const deriveKeys = async (recovery_key: string): Promise<Keys> => {
  const deriveKey = (use: string, length: number): ArrayBuffer => hkdfSync("sha256", recovery_key, SALT, use, length);
  const aes = await crypto.subtle.importKey("raw", deriveKey("seal", KEY_BYTES), "AES-GCM", false, [
    "encrypt",
    "decrypt",
  ]);
  const hmac = { name: "HMAC", hash: "SHA-256" };
  const mac = await crypto.subtle.importKey("raw", deriveKey("name", KEY_BYTES), hmac, false, ["sign"]);
  const toParameters = (nonce: Uint8Array<ArrayBuffer>, location: string) => ({
    name: "AES-GCM",
    iv: nonce,
    additionalData: new TextEncoder().encode(location),
  });
  return {
    password: recovery_key,
    gear: new Int32Array(deriveKey("cut", 1024)),
    name: async (bytes) => Buffer.from(await crypto.subtle.sign("HMAC", mac, bytes)).toString("hex"),
    seal: async (bytes, location) => {
      const nonce = generateNonce();
      const packed = new Uint8Array(await compress(bytes, LEVEL));
      return new Uint8Array(
        Buffer.concat([nonce, new Uint8Array(await crypto.subtle.encrypt(toParameters(nonce, location), aes, packed))]),
      );
    },
    open: async (sealed, location, max) => {
      try {
        const nonce = new Uint8Array(sealed.subarray(0, NONCE_BYTES));
        const packed = await crypto.subtle.decrypt(
          toParameters(nonce, location),
          aes,
          new Uint8Array(sealed.subarray(NONCE_BYTES)),
        );
        return new Uint8Array(await decompress(new Uint8Array(packed), { maxOutputLength: max }));
      } catch (cause) {
        throw new HomeBackupError("The backup was altered, or encrypted with another recovery key.", {
          isDamage: true,
          cause,
        });
      }
    },
  };
};
