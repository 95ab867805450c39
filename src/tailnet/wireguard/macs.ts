// The two MACs at the end of every handshake message, and cookies (whitepaper 5.3, 5.4.4, 5.4.7): mac1 proves that the sender knows the
// receiver's key, and mac2 that the sender receives messages at its address. A responder under load answers only messages with a mac2.
// [TL-20]
import type { Clock } from "#base/clock.ts";
import { generateBytes } from "#base/ids.ts";
import { COOKIE, copyPart, TYPE, toView } from "./messages.ts";
import { equal, HASH_BYTES, hash, MAC_BYTES, mac, openCookie, sealCookie, utf8 } from "./primitives.ts";

const LABEL_MAC1 = utf8("mac1----");
const LABEL_COOKIE = utf8("cookie--");
/** A cookie and the secret behind it are valid for two minutes. */
const COOKIE_TTL_MS = 120_000;

/** The MAC keys for messages to the holder of a public key. */
export class MacKeys {
  readonly mac1: Uint8Array;
  readonly cookie: Uint8Array;

  constructor(holder: Uint8Array) {
    this.mac1 = hash(LABEL_MAC1, holder);
    this.cookie = hash(LABEL_COOKIE, holder);
  }
}

/** Writes mac1 at `at`, and mac2 after it if there is a cookie. Returns mac1. */
export const writeMacs = (message: Uint8Array, at: number, keys: MacKeys, cookie?: Uint8Array): Uint8Array => {
  const first = mac(keys.mac1, message.subarray(0, at));
  message.set(first, at);
  if (cookie) message.set(mac(cookie, message.subarray(0, at + MAC_BYTES)), at + MAC_BYTES);
  return first;
};

/** Returns whether the mac1 at `at` is valid. */
export const hasMac1 = (message: Uint8Array, at: number, keys: MacKeys): boolean =>
  equal(mac(keys.mac1, message.subarray(0, at)), message.subarray(at, at + MAC_BYTES));

/** The responder's side: issues and verifies cookies for addresses. */
export class CookieIssuer {
  readonly #clock: Clock;
  readonly #keys: MacKeys;
  #secret = { value: generateBytes(HASH_BYTES), since: Number.NEGATIVE_INFINITY };

  constructor(clock: Clock, own: MacKeys) {
    this.#clock = clock;
    this.#keys = own;
  }

  /** Returns whether the mac2, which follows the mac1 at `at`, was made with a cookie for this address. */
  hasMac2(message: Uint8Array, at: number, address: Uint8Array): boolean {
    const end = at + MAC_BYTES;
    return equal(mac(this.#createCookie(address), message.subarray(0, end)), message.subarray(end, end + MAC_BYTES));
  }

  /** Returns the reply to a message without a mac2: a cookie that only its sender can decrypt. */
  reply(message: Uint8Array, at: number, address: Uint8Array): Uint8Array {
    const out = new Uint8Array(COOKIE.bytes);
    const view = toView(out);
    view.setUint32(0, TYPE.cookie, true);
    // Both kinds of handshake messages have the sender's index at the same offset.
    view.setUint32(COOKIE.receiver, toView(message).getUint32(4, true), true);
    const nonce = generateBytes(COOKIE.sealed - COOKIE.nonce);
    out.set(nonce, COOKIE.nonce);
    const mac1 = message.subarray(at, at + MAC_BYTES);
    out.set(sealCookie(this.#keys.cookie, nonce, this.#createCookie(address), mac1), COOKIE.sealed);
    return out;
  }

  #createCookie(address: Uint8Array): Uint8Array {
    const now = this.#clock.monotonic();
    if (now - this.#secret.since >= COOKIE_TTL_MS) this.#secret = { value: generateBytes(HASH_BYTES), since: now };
    return mac(this.#secret.value, address);
  }
}

/** The initiator's side: keeps the received cookie. */
export class CookieJar {
  readonly #clock: Clock;
  readonly #keys: MacKeys;
  #cookie: { value: Uint8Array; at: number } | undefined;

  constructor(clock: Clock, theirs: MacKeys) {
    this.#clock = clock;
    this.#keys = theirs;
  }

  /** Takes a cookie message; returns false if it does not answer the message with this mac1. */
  consumeReply(message: Uint8Array, mac1: Uint8Array): boolean {
    const nonce = copyPart(message, COOKIE.nonce, COOKIE.sealed - COOKIE.nonce);
    const value = openCookie(this.#keys.cookie, nonce, copyPart(message, COOKIE.sealed, 32), mac1);
    if (value) this.#cookie = { value, at: this.#clock.monotonic() };
    return value !== undefined;
  }

  /** The cookie, while it is valid. */
  get fresh(): Uint8Array | undefined {
    const { value, at } = this.#cookie ?? { value: undefined, at: 0 };
    return this.#clock.monotonic() - at < COOKIE_TTL_MS ? value : undefined;
  }
}
