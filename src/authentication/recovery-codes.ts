// Recovery codes: ten single-use codes of 80 bits for users who have lost the device with their second factor. Only their hashes are
// stored; with 80 random bits each, a fast hash is enough.
import { generateBytes, sha256 } from "#base/ids.ts";

const CODE_COUNT = 10;
const CODE_BYTES = 10;
/** Letters and digits that are hard to confuse (Crockford's base 32). */
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";

/** Generates ten codes, such as `8k2m-x0pq-7v3c-hd5n`. */
export const generateRecoveryCodes = (): string[] => Array.from({ length: CODE_COUNT }, generateCode);

const generateCode = (): string => {
  let bits = 0n;
  for (const byte of generateBytes(CODE_BYTES)) bits = (bits << 8n) | BigInt(byte);
  const letters = Array.from({ length: 16 }, (_, i) => ALPHABET[Number((bits >> BigInt(5 * i)) & 31n)]).join("");
  return letters.replace(/(.{4})(?=.)/g, "$1-");
};

/** Returns the hash of a code regardless of its formatting; undefined if the text cannot be a code. */
export const hashRecoveryCode = (typed: string): string | undefined => {
  const plain = typed.toLowerCase().replace(/[\s-]/g, "").replaceAll("o", "0").replace(/[il]/g, "1");
  return /^[0-9a-hjkmnp-tv-z]{16}$/.test(plain) ? sha256(`recovery ${plain}`) : undefined;
};
