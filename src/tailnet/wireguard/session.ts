// One pair of keys for data and what it has done: seals packets with growing counters, opens each counter once. [TL-19]
import { openSealed, seal } from "../aead/aead.ts";
import type { SessionKeys } from "./handshake.ts";
import { DATA, TYPE, toView } from "./messages.ts";

/** Far below the number of packets at which keys wear out, and within what a number counts exactly. */
const LAST_COUNTER = 2 ** 52;

/** Counters that may come late. */
export const WINDOW = 8_192 - 32;
const WORDS = 8_192 / 32;

/** Which counters of data packets have come already (RFC 6479): a window of bits that moves on with the highest one. */
export class ReplayWindow {
  readonly #words = new Uint32Array(WORDS);
  #highest = -1;

  /** True when this counter has not come and is not too old. Nothing is remembered: the packet may yet prove to be forged. */
  isFresh(counter: number): boolean {
    if (counter > this.#highest) return true;
    if (this.#highest - counter >= WINDOW) return false;
    return ((this.#words[Math.floor(counter / 32) % WORDS] as number) & (1 << (counter % 32))) === 0;
  }

  /** Remembers a counter of a packet that has opened. */
  mark(counter: number): void {
    if (counter > this.#highest) {
      const [last, next] = [Math.floor(this.#highest / 32), Math.floor(counter / 32)];
      for (let word = Math.max(last + 1, next - WORDS + 1); word <= next; word += 1) this.#words[word % WORDS] = 0;
      this.#highest = counter;
    }
    const word = Math.floor(counter / 32) % WORDS;
    this.#words[word] = (this.#words[word] as number) | (1 << (counter % 32));
  }
}

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
