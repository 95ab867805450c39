// WireGuard with one peer over any carrier (whitepaper 5 and 6): initiator and responder, rekeying during use, queueing of packets until
// there are keys. Uses the given clock; `tick` is called about once a second. [TL-19] [TL-20] [TL-21]
import type { Clock } from "#base/clock.ts";
import type { Random } from "#base/random.ts";
import type { KeyPair } from "../box.ts";
import { initiate, type Pending, readInitiation, readResponse, respond, type SessionKeys } from "./handshake.ts";
import { type CookieIssuer, CookieJar, hasMac1, MacKeys } from "./macs.ts";
import { COOKIE, DATA, findMessageType, INITIATION, TYPE, toView } from "./messages.ts";
import { EMPTY, equal } from "./primitives.ts";
import { Session } from "./session.ts";
import { freshIndex, type Tai64n } from "./stamps.ts";

export const REKEY_AFTER_MS = 120_000;
export const REJECT_AFTER_MS = 180_000;
export const RETRY_MS = 5_000;
const RETRY_JITTER_MS = 333;
export const GIVE_UP_MS = 90_000;
export const KEEPALIVE_MS = 10_000;
/** A receiving initiator rekeys if its keys will expire before another exchange. */
const REKEY_ON_RECEIVE_MS = REJECT_AFTER_MS - KEEPALIVE_MS - RETRY_MS;
const MAX_STAGED = 256;
/** Minimum interval between two initiations of a peer. */
const INITIATION_GAP_MS = 20;

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
  /** Passes a message to the carrier. It is valid until this returns. */
  transmit(message: Uint8Array): void;
  /** Called with each decrypted packet, including its padding. */
  receive(packet: Uint8Array): void;
};

type Trying = Pending & { readonly retryAt: number };

export class Tunnel {
  readonly #o: TunnelOptions;
  readonly #clock: Clock;
  readonly #ownKeys: MacKeys;
  readonly #theirKeys: MacKeys;
  readonly #jar: CookieJar;
  #current: Session | undefined;
  #previous: Session | undefined;
  /** Created as responder; not used for sending before the initiator has used it. */
  #next: Session | undefined;
  #trying: Trying | undefined;
  #firstTry = 0;
  #staged: Uint8Array[] = [];
  #lastStamp: Uint8Array = EMPTY;
  #lastInitiation = Number.NEGATIVE_INFINITY;
  /** Since when we owe the peer a message, and since when it owes us one. */
  #owing: number | undefined;
  #waiting: number | undefined;
  /** Number of completed handshakes. */
  handshakes = 0;

  constructor(options: TunnelOptions) {
    this.#o = options;
    this.#clock = options.host.clock;
    this.#ownKeys = new MacKeys(options.host.key.public);
    this.#theirKeys = new MacKeys(options.peer);
    this.#jar = new CookieJar(this.#clock, this.#theirKeys);
  }

  /** Sends a packet, or queues a copy until there are keys; the oldest of more than 256 are dropped. */
  send(packet: Uint8Array): void {
    const now = this.#clock.monotonic();
    const session = this.#current;
    if (!session || now - session.born >= REJECT_AFTER_MS || !session.mayCount) {
      this.#staged.push(packet.slice());
      if (this.#staged.length > MAX_STAGED) this.#staged.shift();
      this.#begin(now);
      return;
    }
    this.#owing = undefined;
    if (packet.byteLength > 0) this.#waiting ??= now;
    this.#o.transmit(session.seal(packet));
    if (session.isInitiator && now - session.born >= REKEY_AFTER_MS) this.#begin(now);
  }

  /** Takes a message from the peer; invalid ones are dropped. */
  push(message: Uint8Array): void {
    const type = findMessageType(message);
    if (type === TYPE.data) this.#takeData(message);
    else if (type === TYPE.initiation) this.#answer(message);
    else if (type === TYPE.response) this.#finish(message);
    else if (type === TYPE.cookie) this.#takeCookie(message);
  }

  /** Does what is due: retries, keepalives, rekeying after silence, expiry of old keys. */
  tick(): void {
    const now = this.#clock.monotonic();
    if (this.#trying && now >= this.#trying.retryAt) this.#begin(now);
    if (this.#owing !== undefined && now - this.#owing >= KEEPALIVE_MS) {
      this.#owing = undefined;
      if (this.#current && now - this.#current.born < REJECT_AFTER_MS) this.send(EMPTY);
    }
    if (this.#waiting !== undefined && now - this.#waiting >= KEEPALIVE_MS + RETRY_MS) {
      this.#waiting = undefined;
      this.#begin(now);
    }
    const isOver = (session: Session | undefined): boolean =>
      session !== undefined && now - session.born >= 3 * REJECT_AFTER_MS;
    if (isOver(this.#current)) this.#current = undefined;
    if (isOver(this.#previous)) this.#previous = undefined;
    if (isOver(this.#next)) this.#next = undefined;
  }

  #begin(now: number): void {
    if (this.#trying && now < this.#trying.retryAt) return;
    if (!this.#trying) this.#firstTry = now;
    const { host, peer, transmit } = this.#o;
    const begun =
      now - this.#firstTry < GIVE_UP_MS &&
      initiate(host.key, peer, {
        local: freshIndex(),
        stamp: host.stamps.next(),
        macs: { keys: this.#theirKeys, cookie: this.#jar.fresh },
      });
    if (!begun) {
      // The peer is unreachable, so queued packets are dropped.
      this.#trying = undefined;
      this.#staged = [];
      return;
    }
    this.#trying = { ...begun.pending, retryAt: now + RETRY_MS + host.random() * RETRY_JITTER_MS };
    transmit(begun.message);
  }

  #answer(message: Uint8Array): void {
    const { host, peer, transmit } = this.#o;
    if (!hasMac1(message, INITIATION.mac1, this.#ownKeys)) return;
    if (host.isUnderLoad() && !host.cookies.knows(message, INITIATION.mac1, peer)) {
      transmit(host.cookies.reply(message, INITIATION.mac1, peer));
      return;
    }
    const now = this.#clock.monotonic();
    if (now - this.#lastInitiation < INITIATION_GAP_MS) return;
    this.#lastInitiation = now;
    const offer = readInitiation(host.key, message);
    if (!offer || !equal(offer.peer, peer) || Buffer.compare(offer.stamp, this.#lastStamp) <= 0) return;
    const answer = respond(offer, { local: freshIndex(), macs: { keys: this.#theirKeys, cookie: this.#jar.fresh } });
    if (!answer) return;
    this.#lastStamp = offer.stamp;
    this.#next = this.#made(answer.keys, false);
    transmit(answer.message);
  }

  #finish(message: Uint8Array): void {
    const keys = this.#trying && readResponse(this.#o.host.key, this.#trying, message, this.#ownKeys);
    if (!keys) return;
    this.#trying = undefined;
    this.#promote(this.#made(keys, true));
    // The responder may not send with these keys before it has received with them.
    if (this.#staged.length === 0) this.send(EMPTY);
    this.#flush();
  }

  #takeData(message: Uint8Array): void {
    const index = toView(message).getUint32(DATA.receiver, true);
    const session = this.#named(index);
    const now = this.#clock.monotonic();
    if (!session || now - session.born >= REJECT_AFTER_MS) return;
    const packet = session.open(message);
    if (!packet) return;
    if (session === this.#next) {
      this.#next = undefined;
      this.#promote(session);
      this.#flush();
    }
    this.#waiting = undefined;
    if (session.isInitiator && session === this.#current && now - session.born >= REKEY_ON_RECEIVE_MS) this.#begin(now);
    if (packet.byteLength === 0) return;
    this.#owing ??= now;
    this.#o.receive(packet);
  }

  #named(index: number): Session | undefined {
    if (this.#current?.local === index) return this.#current;
    return [this.#next, this.#previous].find((one) => one?.local === index);
  }

  #takeCookie(message: Uint8Array): void {
    const trying = this.#trying;
    if (trying && toView(message).getUint32(COOKIE.receiver, true) === trying.local)
      this.#jar.take(message, trying.mac1);
  }

  #made(keys: SessionKeys, isInitiator: boolean): Session {
    return new Session(keys, { isInitiator, born: this.#clock.monotonic() });
  }

  #promote(session: Session): void {
    this.handshakes += 1;
    this.#previous = this.#current;
    this.#current = session;
  }

  #flush(): void {
    for (const packet of this.#staged.splice(0)) this.send(packet);
  }
}
