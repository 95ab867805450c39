// WireGuard's handshake Noise_IKpsk2 as four pure steps (whitepaper 5.4.2, 5.4.3; facts/tailnet-peer 4): initiate, read the initiation,
// respond, read the response. The pre-shared key is zero. Invalid messages yield undefined. [TL-19]
import { agree, KEY_BYTES, type KeyPair, keyPair } from "../box.ts";
import { hasMac1, type MacKeys, writeMacs } from "./macs.ts";
import { INITIATION, part, RESPONSE, TYPE, toView } from "./messages.ts";
import { EMPTY, equal, hash, kdf, openField, sealField, utf8 } from "./primitives.ts";

const CHAIN = hash(utf8("Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s"));
const HASH = hash(CHAIN, utf8("WireGuard v1 zx2c4 Jason@zx2c4.com"));
const NO_PSK = new Uint8Array(KEY_BYTES);
const STATIC_BYTES = KEY_BYTES + 16;
const STAMP_BYTES = 12 + 16;

/** Keys for data, and the indices that identify them on either side. */
export type SessionKeys = {
  readonly local: number;
  readonly remote: number;
  readonly send: Uint8Array;
  readonly receive: Uint8Array;
};

/** The initiator's state until the response. */
export type Pending = {
  readonly local: number;
  readonly ephemeral: KeyPair;
  readonly chain: Uint8Array;
  readonly hash: Uint8Array;
  readonly mac1: Uint8Array;
};

/** The content of an initiation: the sender, the timestamp, and the state for the response. */
export type Offer = {
  readonly peer: Uint8Array;
  readonly stamp: Uint8Array;
  readonly remote: number;
  readonly ephemeral: Uint8Array;
  readonly chain: Uint8Array;
  readonly hash: Uint8Array;
};

type Step = { chain: Uint8Array; hash: Uint8Array };

/** Mixes the shared point of two keys into the chain. Returns the new chain and a key; undefined for a key that yields no secret. */
const mixed = (chain: Uint8Array, secret: Uint8Array, peer: Uint8Array): [Uint8Array, Uint8Array] | undefined => {
  const point = agree(secret, peer);
  if (!point) return undefined;
  const [next, key] = kdf(2, chain, point);
  return [next, key];
};

const begun = (responder: Uint8Array, ephemeral: Uint8Array): Step => ({
  chain: kdf(1, CHAIN, ephemeral)[0],
  hash: hash(hash(HASH, responder), ephemeral),
});

export type Macs = { readonly keys: MacKeys; readonly cookie: Uint8Array | undefined };

/**
 * Returns the first message. `stamp` is a TAI64N timestamp of 12 bytes that increases with every call. Undefined for a peer's key that
 * yields no secret.
 */
export const initiate = (
  own: KeyPair,
  peer: Uint8Array,
  { local, stamp, macs }: { local: number; stamp: Uint8Array; macs: Macs },
): { message: Uint8Array; pending: Pending } | undefined => {
  const ephemeral = keyPair();
  const message = new Uint8Array(INITIATION.bytes);
  const view = toView(message);
  view.setUint32(0, TYPE.initiation, true);
  view.setUint32(INITIATION.sender, local, true);
  message.set(ephemeral.public, INITIATION.ephemeral);
  const step = begun(peer, ephemeral.public);
  const first = mixed(step.chain, ephemeral.secret, peer);
  if (!first) return undefined;
  const sealedStatic = sealField(first[1], own.public, step.hash);
  message.set(sealedStatic, INITIATION.static);
  step.hash = hash(step.hash, sealedStatic);
  const second = mixed(first[0], own.secret, peer);
  if (!second) return undefined;
  const sealedStamp = sealField(second[1], stamp, step.hash);
  message.set(sealedStamp, INITIATION.stamp);
  const mac1 = writeMacs(message, INITIATION.mac1, macs.keys, macs.cookie);
  return { message, pending: { local, ephemeral, chain: second[0], hash: hash(step.hash, sealedStamp), mac1 } };
};

/** Reads an initiation whose mac1 has been checked. */
export const readInitiation = (own: KeyPair, message: Uint8Array): Offer | undefined => {
  const ephemeral = part(message, INITIATION.ephemeral, KEY_BYTES);
  const step = begun(own.public, ephemeral);
  const first = mixed(step.chain, own.secret, ephemeral);
  const sealedStatic = part(message, INITIATION.static, STATIC_BYTES);
  const peer = first && openField(first[1], sealedStatic, step.hash);
  if (!peer) return undefined;
  step.hash = hash(step.hash, sealedStatic);
  const second = mixed(first[0], own.secret, peer);
  const sealedStamp = part(message, INITIATION.stamp, STAMP_BYTES);
  const stamp = second && openField(second[1], sealedStamp, step.hash);
  if (!stamp) return undefined;
  const remote = toView(message).getUint32(INITIATION.sender, true);
  return { peer, stamp, remote, ephemeral, chain: second[0], hash: hash(step.hash, sealedStamp) };
};

/** Returns the response to an initiation, and the resulting keys. */
export const respond = (
  { peer, remote, ephemeral: theirs, chain, hash: before }: Offer,
  { local, macs }: { local: number; macs: Macs },
): { message: Uint8Array; keys: SessionKeys } | undefined => {
  const ephemeral = keyPair();
  const message = new Uint8Array(RESPONSE.bytes);
  const view = toView(message);
  view.setUint32(0, TYPE.response, true);
  view.setUint32(RESPONSE.sender, local, true);
  view.setUint32(RESPONSE.receiver, remote, true);
  message.set(ephemeral.public, RESPONSE.ephemeral);
  const sealed = confirmed({ chain, hash: before }, ephemeral.public, [
    [ephemeral.secret, theirs],
    [ephemeral.secret, peer],
  ]);
  if (!sealed) return undefined;
  message.set(sealField(sealed.key, EMPTY, sealed.hash), RESPONSE.empty);
  writeMacs(message, RESPONSE.mac1, macs.keys, macs.cookie);
  const [receive, send] = kdf(2, sealed.chain, EMPTY);
  return { message, keys: { local, remote, send, receive } };
};

/** Reads the response to `pending`, and returns the resulting keys. */
export const readResponse = (
  own: KeyPair,
  pending: Pending,
  message: Uint8Array,
  keys: MacKeys,
): SessionKeys | undefined => {
  const view = toView(message);
  if (view.getUint32(RESPONSE.receiver, true) !== pending.local || !hasMac1(message, RESPONSE.mac1, keys))
    return undefined;
  const theirs = part(message, RESPONSE.ephemeral, KEY_BYTES);
  const sealed = confirmed(pending, theirs, [
    [pending.ephemeral.secret, theirs],
    [own.secret, theirs],
  ]);
  const empty = sealed && openField(sealed.key, part(message, RESPONSE.empty, 16), sealed.hash);
  if (!empty || !equal(empty, EMPTY)) return undefined;
  const [send, receive] = kdf(2, sealed.chain, EMPTY);
  return { local: pending.local, remote: view.getUint32(RESPONSE.sender, true), send, receive };
};

/** The second half, which is the same on both sides: the responder's ephemeral key, two points, and the pre-shared key. */
const confirmed = (
  { chain, hash: before }: Step,
  ephemeral: Uint8Array,
  points: readonly [Uint8Array, Uint8Array][],
): (Step & { key: Uint8Array }) | undefined => {
  let next = kdf(1, chain, ephemeral)[0];
  for (const [secret, peer] of points) {
    const point = agree(secret, peer);
    if (!point) return undefined;
    next = kdf(1, next, point)[0];
  }
  const [last, temporary, key] = kdf(3, next, NO_PSK);
  return { chain: last, hash: hash(hash(before, ephemeral), temporary), key };
};
