// WireGuard's handshake Noise_IKpsk2 as four functions (whitepaper 5.4.2, 5.4.3; facts/tailnet-peer 4): initiate, read the initiation,
// respond, read the response. The pre-shared key is zero. Functions return undefined for invalid messages. [TL-19]
import { computeSharedPoint, createKeyPair, KEY_BYTES, type KeyPair } from "../box.ts";
import { hasMac1, type MacKeys, writeMacs } from "./macs.ts";
import { copyPart, INITIATION, RESPONSE, TYPE, toView } from "./messages.ts";
import { EMPTY, equal, hash, kdf, openField, sealField, utf8 } from "./primitives.ts";

const INITIAL_CHAIN_KEY = hash(utf8("Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s"));
const INITIAL_HASH = hash(INITIAL_CHAIN_KEY, utf8("WireGuard v1 zx2c4 Jason@zx2c4.com"));
const ZERO_PSK = new Uint8Array(KEY_BYTES);
const STATIC_BYTES = KEY_BYTES + 16;
const TIMESTAMP_BYTES = 12 + 16;

/** Keys for data, and the indices that identify them on either side. */
export type SessionKeys = {
  readonly local: number;
  readonly remote: number;
  readonly send: Uint8Array;
  readonly receive: Uint8Array;
};

/** The initiator's state until the response. */
export type PendingHandshake = {
  readonly local: number;
  readonly ephemeral: KeyPair;
  readonly chain: Uint8Array;
  readonly hash: Uint8Array;
  readonly mac1: Uint8Array;
};

/** The content of an initiation: the sender, the timestamp, and the state for the response. */
export type InitiationContent = {
  readonly peer: Uint8Array;
  readonly stamp: Uint8Array;
  readonly remote: number;
  readonly ephemeral: Uint8Array;
  readonly chain: Uint8Array;
  readonly hash: Uint8Array;
};

type HandshakeState = { chain: Uint8Array; hash: Uint8Array };

/** Mixes the shared point of two keys into the chain. Returns the new chain and a key; undefined for a key that yields no secret. */
const mixKey = (chain: Uint8Array, secret: Uint8Array, peer: Uint8Array): [Uint8Array, Uint8Array] | undefined => {
  const point = computeSharedPoint(secret, peer);
  if (!point) return undefined;
  const [next, key] = kdf(2, chain, point);
  return [next, key];
};

const beginHandshake = (responder: Uint8Array, ephemeral: Uint8Array): HandshakeState => ({
  chain: kdf(1, INITIAL_CHAIN_KEY, ephemeral)[0],
  hash: hash(hash(INITIAL_HASH, responder), ephemeral),
});

export type Macs = { readonly keys: MacKeys; readonly cookie: Uint8Array | undefined };

/**
 * Returns the first message; undefined for a peer's key that yields no secret. `stamp` is a TAI64N timestamp of 12 bytes that must increase
 * with every call.
 */
export const initiate = (
  own: KeyPair,
  peer: Uint8Array,
  { local, stamp, macs }: { local: number; stamp: Uint8Array; macs: Macs },
): { message: Uint8Array; pending: PendingHandshake } | undefined => {
  const ephemeral = createKeyPair();
  const message = new Uint8Array(INITIATION.bytes);
  const view = toView(message);
  view.setUint32(0, TYPE.initiation, true);
  view.setUint32(INITIATION.sender, local, true);
  message.set(ephemeral.public, INITIATION.ephemeral);
  const step = beginHandshake(peer, ephemeral.public);
  const first = mixKey(step.chain, ephemeral.secret, peer);
  if (!first) return undefined;
  const sealedStatic = sealField(first[1], own.public, step.hash);
  message.set(sealedStatic, INITIATION.static);
  step.hash = hash(step.hash, sealedStatic);
  const second = mixKey(first[0], own.secret, peer);
  if (!second) return undefined;
  const sealedStamp = sealField(second[1], stamp, step.hash);
  message.set(sealedStamp, INITIATION.stamp);
  const mac1 = writeMacs(message, INITIATION.mac1, macs.keys, macs.cookie);
  return { message, pending: { local, ephemeral, chain: second[0], hash: hash(step.hash, sealedStamp), mac1 } };
};

/** Reads an initiation. The caller has checked its mac1. */
export const readInitiation = (own: KeyPair, message: Uint8Array): InitiationContent | undefined => {
  const ephemeral = copyPart(message, INITIATION.ephemeral, KEY_BYTES);
  const step = beginHandshake(own.public, ephemeral);
  const first = mixKey(step.chain, own.secret, ephemeral);
  const sealedStatic = copyPart(message, INITIATION.static, STATIC_BYTES);
  const peer = first && openField(first[1], sealedStatic, step.hash);
  if (!peer) return undefined;
  step.hash = hash(step.hash, sealedStatic);
  const second = mixKey(first[0], own.secret, peer);
  const sealedStamp = copyPart(message, INITIATION.stamp, TIMESTAMP_BYTES);
  const stamp = second && openField(second[1], sealedStamp, step.hash);
  if (!stamp) return undefined;
  const remote = toView(message).getUint32(INITIATION.sender, true);
  return { peer, stamp, remote, ephemeral, chain: second[0], hash: hash(step.hash, sealedStamp) };
};

/** Returns the response to an initiation, and the resulting keys. */
export const respond = (
  { peer, remote, ephemeral: theirs, chain, hash: before }: InitiationContent,
  { local, macs }: { local: number; macs: Macs },
): { message: Uint8Array; keys: SessionKeys } | undefined => {
  const ephemeral = createKeyPair();
  const message = new Uint8Array(RESPONSE.bytes);
  const view = toView(message);
  view.setUint32(0, TYPE.response, true);
  view.setUint32(RESPONSE.sender, local, true);
  view.setUint32(RESPONSE.receiver, remote, true);
  message.set(ephemeral.public, RESPONSE.ephemeral);
  const sealed = finishHandshake({ chain, hash: before }, ephemeral.public, [
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
  pending: PendingHandshake,
  message: Uint8Array,
  keys: MacKeys,
): SessionKeys | undefined => {
  const view = toView(message);
  if (view.getUint32(RESPONSE.receiver, true) !== pending.local || !hasMac1(message, RESPONSE.mac1, keys))
    return undefined;
  const theirs = copyPart(message, RESPONSE.ephemeral, KEY_BYTES);
  const sealed = finishHandshake(pending, theirs, [
    [pending.ephemeral.secret, theirs],
    [own.secret, theirs],
  ]);
  const empty = sealed && openField(sealed.key, copyPart(message, RESPONSE.empty, 16), sealed.hash);
  if (!empty || !equal(empty, EMPTY)) return undefined;
  const [send, receive] = kdf(2, sealed.chain, EMPTY);
  return { local: pending.local, remote: view.getUint32(RESPONSE.sender, true), send, receive };
};

/** Computes the second half of the handshake, which is the same on both sides: the responder's ephemeral key, two points, and the PSK. */
const finishHandshake = (
  { chain, hash: before }: HandshakeState,
  ephemeral: Uint8Array,
  points: readonly [Uint8Array, Uint8Array][],
): (HandshakeState & { key: Uint8Array }) | undefined => {
  let next = kdf(1, chain, ephemeral)[0];
  for (const [secret, peer] of points) {
    const point = computeSharedPoint(secret, peer);
    if (!point) return undefined;
    next = kdf(1, next, point)[0];
  }
  const [last, temporary, key] = kdf(3, next, ZERO_PSK);
  return { chain: last, hash: hash(hash(before, ephemeral), temporary), key };
};
