// Time-based one-time codes (RFC 6238, 4226): six digits, SHA-1, 30 seconds, which every authenticator app supports. Pure; the database
// layer rejects reused codes (db/second-factors.ts).
import { createHmac, timingSafeEqual } from "node:crypto";

const STEP_MS = 30_000;
const DIGITS = 6;
/** The length of the hash, which RFC 4226 recommends. */
export const SECRET_BYTES = 20;

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/** Encodes as RFC 4648 without padding, the form in which apps accept a typed secret. */
export const encodeBase32 = (bytes: Uint8Array): string => {
  let text = "";
  let [bits, value] = [0, 0];
  for (const byte of bytes) {
    value = ((value << 8) | byte) & 0xffff;
    for (bits += 8; bits >= 5; bits -= 5) text += ALPHABET[(value >> (bits - 5)) & 31];
  }
  return bits > 0 ? text + ALPHABET[(value << (5 - bits)) & 31] : text;
};

/** Decodes the output of `encodeBase32`. */
export const fromBase32 = (text: string): Uint8Array => {
  const bytes: number[] = [];
  let [bits, value] = [0, 0];
  for (const letter of text) {
    value = ((value << 5) | ALPHABET.indexOf(letter)) & 0xffff;
    bits += 5;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push((value >> bits) & 255);
  }
  return new Uint8Array(bytes);
};

/** Returns the 30-second step of a time (milliseconds since 1970). */
export const toStep = (now: number): number => Math.floor(now / STEP_MS);

/** Returns the code of a step. `secret` is base32. */
export const computeCode = (secret: string, step: number): string => {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const hash = createHmac("sha1", fromBase32(secret)).update(counter).digest();
  const offset = (hash[hash.length - 1] ?? 0) & 15;
  const number = hash.readUInt32BE(offset) & 0x7fffffff;
  return String(number % 10 ** DIGITS).padStart(DIGITS, "0");
};

/** Returns the step of this code: the current, previous or next one, to allow for clock differences. Undefined if the code is wrong. */
export const findStep = (secret: string, code: string, now: number): number | undefined => {
  if (!/^\d{6}$/.test(code)) return undefined;
  const currentStep = toStep(now);
  const enteredCode = Buffer.from(code);
  return [currentStep, currentStep - 1, currentStep + 1].find((step) =>
    timingSafeEqual(Buffer.from(computeCode(secret, step)), enteredCode),
  );
};

/** Returns the content of the QR code for enrollment. `account` distinguishes several accounts in one app. */
export const formatOtpauthUri = (secret: string, { issuer, account }: { issuer: string; account: string }): string =>
  `otpauth://totp/${encodeURIComponent(issuer)}:${encodeURIComponent(account)}?${[
    `secret=${secret}`,
    `issuer=${encodeURIComponent(issuer)}`,
    "algorithm=SHA1&digits=6&period=30",
  ].join("&")}`;
