// Discovery messages over the relay (facts/tailnet-peer 3): answers the pings of official clients. Direct paths are neither offered nor
// sought, so all traffic stays on the relay. [TL-27]
import { deriveSharedKey, KEY_BYTES, type KeyPair, NONCE_BYTES, open, seal } from "../box.ts";

const MAGIC = Uint8Array.of(0x54, 0x53, 0xf0, 0x9f, 0x92, 0xac);
const TYPE = { ping: 1, pong: 2 } as const;
const VERSION = 1;
const ID_BYTES = 12;
const HEAD_BYTES = MAGIC.byteLength + KEY_BYTES;
const TAG_BYTES = 16;
/** Answers are padded to the size of the largest packet of a tunnel. */
const MESSAGE_BYTES = 1_310;
const BODY_BYTES = MESSAGE_BYTES - HEAD_BYTES - NONCE_BYTES - TAG_BYTES;

/** Returns the key of a discovery message's sender; undefined for other messages. */
export const findDiscoverySender = (message: Uint8Array): Uint8Array | undefined =>
  message[0] === MAGIC[0] &&
  message.byteLength >= HEAD_BYTES + NONCE_BYTES + TAG_BYTES &&
  MAGIC.every((byte, i) => message[i] === byte)
    ? message.slice(MAGIC.byteLength, HEAD_BYTES)
    : undefined;

/** Returns the endpoint that represents the relay: 127.3.3.40 as an IPv6 address, with the region as the port. */
const toRelayEndpoint = (region: number): Uint8Array =>
  Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 3, 3, 40, region >> 8, region);

/** Discovery with one other peer. */
export class Discovery {
  readonly #own: KeyPair;
  readonly #peer: Uint8Array;
  readonly #shared: Uint8Array | undefined;

  constructor(own: KeyPair, peer: Uint8Array) {
    this.#own = own;
    this.#peer = peer;
    this.#shared = deriveSharedKey(own.secret, peer);
  }

  /** Returns whether this is the other peer's key. */
  isForPeer(sender: Uint8Array): boolean {
    return Buffer.compare(sender, this.#peer) === 0;
  }

  /** Returns the answer to a message; undefined if it needs none or is invalid. */
  answer(message: Uint8Array, region: number): Uint8Array | undefined {
    const plain = this.#shared && open(this.#shared, message.subarray(HEAD_BYTES));
    if (!this.#shared || !plain || plain[0] !== TYPE.ping || plain.byteLength < 2 + ID_BYTES) return undefined;
    const body = new Uint8Array(BODY_BYTES);
    body[0] = TYPE.pong;
    body[1] = VERSION;
    body.set(plain.subarray(2, 2 + ID_BYTES), 2);
    body.set(toRelayEndpoint(region), 2 + ID_BYTES);
    return Buffer.concat([MAGIC, this.#own.public, seal(this.#shared, body)]);
  }
}
