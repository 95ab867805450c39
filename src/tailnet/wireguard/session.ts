// One pair of keys for data and what it has done: seals packets with growing counters, opens each counter once. [TL-19]
import { openSealed, seal } from "../aead/aead.ts";
import type { SessionKeys } from "./handshake.ts";
import { DATA, TYPE, toView } from "./messages.ts";
import { ReplayWindow } from "./replay.ts";

/** Far below the number of packets at which keys wear out, and within what a number counts exactly. */
const LAST_COUNTER = 2 ** 52;

export class Session {
  readonly local: number;
  readonly isInitiator: boolean;
  /** When its keys were made, on the monotonic clock. */
  readonly born: number;
  readonly #keys: SessionKeys;
  readonly #head = new Uint8Array(DATA.body);
  readonly #view = toView(this.#head);
  readonly #window = new ReplayWindow();
  #counter = 0;

  constructor(keys: SessionKeys, { isInitiator, born }: { isInitiator: boolean; born: number }) {
    this.local = keys.local;
    this.isInitiator = isInitiator;
    this.born = born;
    this.#keys = keys;
    this.#view.setUint32(0, TYPE.data, true);
    this.#view.setUint32(DATA.receiver, keys.remote, true);
  }

  /** False once there are no counters left. */
  get mayCount(): boolean {
    return this.#counter < LAST_COUNTER;
  }

  /** A data message of this packet, padded to 16. It is there until the next packet of any session is sealed or opened. */
  seal(plain: Uint8Array): Uint8Array {
    const padded = (plain.byteLength + 15) & ~15;
    const counter = this.#counter;
    this.#counter += 1;
    this.#view.setUint32(DATA.counter, counter >>> 0, true);
    this.#view.setUint32(DATA.counter + 4, Math.floor(counter / 2 ** 32), true);
    return seal(this.#head, { key: this.#keys.send, counter, plain, padded });
  }

  /** The packet in a data message, with its padding; undefined when it was forged, or has come already. */
  open(message: Uint8Array): Uint8Array | undefined {
    const view = toView(message);
    const counter = view.getUint32(DATA.counter, true) + view.getUint32(DATA.counter + 4, true) * 2 ** 32;
    if (counter >= LAST_COUNTER || !this.#window.isFresh(counter)) return undefined;
    const plain = openSealed(this.#keys.receive, counter, message.subarray(DATA.body));
    if (plain) this.#window.mark(counter);
    return plain;
  }
}
