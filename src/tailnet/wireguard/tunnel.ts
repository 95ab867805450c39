// WireGuard with one peer, independent of how messages are carried (whitepaper 5 and 6): both roles in handshakes, rekeying during use, and
// a queue of packets until there are keys. `tick` must be called about once a second. [TL-19] [TL-20] [TL-21]
import type { Clock } from "#base/clock.ts";
import type { Random } from "#base/random.ts";
import type { KeyPair } from "../box.ts";
import {
  initiate,
  type PendingHandshake,
  readInitiation,
  readResponse,
  respond,
  type SessionKeys,
} from "./handshake.ts";
import { type CookieIssuer, CookieJar, hasMac1, MacKeys } from "./macs.ts";
import { COOKIE, DATA, findMessageType, INITIATION, TYPE, toView } from "./messages.ts";
import { EMPTY, equal } from "./primitives.ts";
import { Session } from "./session.ts";
import { generateIndex, type Tai64n } from "./stamps.ts";

export const REKEY_AFTER_TIME_MS = 120_000;
export const REJECT_AFTER_TIME_MS = 180_000;
export const REKEY_TIMEOUT_MS = 5_000;
const REKEY_JITTER_MS = 333;
export const REKEY_ATTEMPT_TIME_MS = 90_000;
export const KEEPALIVE_TIMEOUT_MS = 10_000;
/** An initiator that only receives rekeys at this age of its keys, so that a handshake can finish before they expire. */
const REKEY_ON_RECEIVE_MS = REJECT_AFTER_TIME_MS - KEEPALIVE_TIMEOUT_MS - REKEY_TIMEOUT_MS;
const MAX_QUEUED_PACKETS = 256;
/** Minimum interval between two initiations of a peer. */
const MIN_INITIATION_INTERVAL_MS = 20;

/** State shared by all tunnels of a peer. */
export type TunnelHost = {
  readonly key: KeyPair;
  readonly clock: Clock;
  readonly random: Random;
  readonly stamps: Tai64n;
  readonly cookies: CookieIssuer;
  /** Counts a received initiation, and returns true if there are too many to answer without a cookie. */
  isUnderLoad(): boolean;
};

export type TunnelOptions = {
  host: TunnelHost;
  /** The peer's public key. */
  peer: Uint8Array;
  /** Sends a message, which is valid until the function returns. */
  transmit(message: Uint8Array): void;
  /** Called with each decrypted packet, including its padding. */
  receive(packet: Uint8Array): void;
};

type PendingInitiation = PendingHandshake & { readonly retryAt: number };

export class Tunnel {
  readonly #options: TunnelOptions;
  readonly #clock: Clock;
  readonly #ownKeys: MacKeys;
  readonly #peerKeys: MacKeys;
  readonly #cookieJar: CookieJar;
  #current: Session | undefined;
  #previous: Session | undefined;
  /** A session created as responder, which is not used for sending until the initiator has used it. */
  #next: Session | undefined;
  #pending: PendingInitiation | undefined;
  #firstAttemptAt = 0;
  #queued: Uint8Array[] = [];
  #lastStamp: Uint8Array = EMPTY;
  #lastInitiationAt = Number.NEGATIVE_INFINITY;
  /** When data was received that no message of this side has answered yet. A keepalive follows it. */
  #unansweredSince: number | undefined;
  /** When data was sent that no message of the peer has answered yet. Silence after it causes a handshake. */
  #awaitingSince: number | undefined;
  /** Number of completed handshakes. */
  handshakes = 0;

  constructor(options: TunnelOptions) {
    this.#options = options;
    this.#clock = options.host.clock;
    this.#ownKeys = new MacKeys(options.host.key.public);
    this.#peerKeys = new MacKeys(options.peer);
    this.#cookieJar = new CookieJar(this.#clock, this.#peerKeys);
  }

  /** Sends a packet, or queues a copy until there are keys. A full queue drops its oldest packet. */
  send(packet: Uint8Array): void {
    const now = this.#clock.monotonic();
    const session = this.#current;
    if (!session || now - session.createdAt >= REJECT_AFTER_TIME_MS || !session.canSend) {
      this.#queued.push(packet.slice());
      if (this.#queued.length > MAX_QUEUED_PACKETS) this.#queued.shift();
      this.#sendInitiation(now);
      return;
    }
    this.#unansweredSince = undefined;
    if (packet.byteLength > 0) this.#awaitingSince ??= now;
    this.#options.transmit(session.seal(packet));
    if (session.isInitiator && now - session.createdAt >= REKEY_AFTER_TIME_MS) this.#sendInitiation(now);
  }

  /** Takes a message from the peer. Invalid messages are dropped. */
  push(message: Uint8Array): void {
    const type = findMessageType(message);
    if (type === TYPE.data) this.#handleData(message);
    else if (type === TYPE.initiation) this.#handleInitiation(message);
    else if (type === TYPE.response) this.#handleResponse(message);
    else if (type === TYPE.cookie) this.#handleCookie(message);
  }

  /** Does the work that is due: retries, keepalives, rekeying after silence, and removal of expired keys. */
  tick(): void {
    const now = this.#clock.monotonic();
    if (this.#pending && now >= this.#pending.retryAt) this.#sendInitiation(now);
    if (this.#unansweredSince !== undefined && now - this.#unansweredSince >= KEEPALIVE_TIMEOUT_MS) {
      this.#unansweredSince = undefined;
      if (this.#current && now - this.#current.createdAt < REJECT_AFTER_TIME_MS) this.send(EMPTY);
    }
    if (this.#awaitingSince !== undefined && now - this.#awaitingSince >= KEEPALIVE_TIMEOUT_MS + REKEY_TIMEOUT_MS) {
      this.#awaitingSince = undefined;
      this.#sendInitiation(now);
    }
    const isOver = (session: Session | undefined): boolean =>
      session !== undefined && now - session.createdAt >= 3 * REJECT_AFTER_TIME_MS;
    if (isOver(this.#current)) this.#current = undefined;
    if (isOver(this.#previous)) this.#previous = undefined;
    if (isOver(this.#next)) this.#next = undefined;
  }

  #sendInitiation(now: number): void {
    if (this.#pending && now < this.#pending.retryAt) return;
    if (!this.#pending) this.#firstAttemptAt = now;
    const { host, peer, transmit } = this.#options;
    const initiation =
      now - this.#firstAttemptAt < REKEY_ATTEMPT_TIME_MS &&
      initiate(host.key, peer, {
        local: generateIndex(),
        stamp: host.stamps.next(),
        macs: { keys: this.#peerKeys, cookie: this.#cookieJar.fresh },
      });
    if (!initiation) {
      // The peer is unreachable, so queued packets are dropped.
      this.#pending = undefined;
      this.#queued = [];
      return;
    }
    this.#pending = { ...initiation.pending, retryAt: now + REKEY_TIMEOUT_MS + host.random() * REKEY_JITTER_MS };
    transmit(initiation.message);
  }

  #handleInitiation(message: Uint8Array): void {
    const { host, peer, transmit } = this.#options;
    if (!hasMac1(message, INITIATION.mac1, this.#ownKeys)) return;
    if (host.isUnderLoad() && !host.cookies.hasMac2(message, INITIATION.mac1, peer)) {
      transmit(host.cookies.reply(message, INITIATION.mac1, peer));
      return;
    }
    const now = this.#clock.monotonic();
    if (now - this.#lastInitiationAt < MIN_INITIATION_INTERVAL_MS) return;
    this.#lastInitiationAt = now;
    const initiation = readInitiation(host.key, message);
    if (!initiation || !equal(initiation.peer, peer) || Buffer.compare(initiation.stamp, this.#lastStamp) <= 0) return;
    const answer = respond(initiation, {
      local: generateIndex(),
      macs: { keys: this.#peerKeys, cookie: this.#cookieJar.fresh },
    });
    if (!answer) return;
    this.#lastStamp = initiation.stamp;
    this.#next = this.#createSession(answer.keys, false);
    transmit(answer.message);
  }

  #handleResponse(message: Uint8Array): void {
    const keys = this.#pending && readResponse(this.#options.host.key, this.#pending, message, this.#ownKeys);
    if (!keys) return;
    this.#pending = undefined;
    this.#promote(this.#createSession(keys, true));
    // The responder may send with these keys only after it has received a packet with them, so an empty packet follows if none is queued.
    if (this.#queued.length === 0) this.send(EMPTY);
    this.#flush();
  }

  #handleData(message: Uint8Array): void {
    const index = toView(message).getUint32(DATA.receiver, true);
    const session = this.#findSession(index);
    const now = this.#clock.monotonic();
    if (!session || now - session.createdAt >= REJECT_AFTER_TIME_MS) return;
    const packet = session.open(message);
    if (!packet) return;
    if (session === this.#next) {
      this.#next = undefined;
      this.#promote(session);
      this.#flush();
    }
    this.#awaitingSince = undefined;
    if (session.isInitiator && session === this.#current && now - session.createdAt >= REKEY_ON_RECEIVE_MS)
      this.#sendInitiation(now);
    if (packet.byteLength === 0) return;
    this.#unansweredSince ??= now;
    this.#options.receive(packet);
  }

  #findSession(index: number): Session | undefined {
    if (this.#current?.local === index) return this.#current;
    return [this.#next, this.#previous].find((one) => one?.local === index);
  }

  #handleCookie(message: Uint8Array): void {
    const pending = this.#pending;
    if (pending && toView(message).getUint32(COOKIE.receiver, true) === pending.local)
      this.#cookieJar.consumeReply(message, pending.mac1);
  }

  #createSession(keys: SessionKeys, isInitiator: boolean): Session {
    return new Session(keys, { isInitiator, createdAt: this.#clock.monotonic() });
  }

  #promote(session: Session): void {
    this.handshakes += 1;
    this.#previous = this.#current;
    this.#current = session;
  }

  #flush(): void {
    for (const packet of this.#queued.splice(0)) this.send(packet);
  }
}
