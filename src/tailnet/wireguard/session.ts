// One pair of data keys and its counters. Encrypts packets with increasing counters, and accepts each received counter once. [TL-19]
import { openSealed, seal } from "../aead/aead.ts";
import type { SessionKeys } from "./handshake.ts";
import { DATA, TYPE, toView } from "./messages.ts";

/** Maximum number of packets: far below the number for which a key is safe, and within the range of exact numbers. */
const REJECT_AFTER_MESSAGES = 2 ** 52;

/** How far a counter may be behind the highest received one. */
export const REPLAY_WINDOW = 8_192 - 32;
const WINDOW_WORDS = 8_192 / 32;

/** Tracks the counters of received data packets (RFC 6479) in a bit window that ends at the highest one. */
export class ReplayWindow {
  readonly #words = new Uint32Array(WINDOW_WORDS);
  #highest = -1;

  /** Returns whether this counter is new and not too old. Does not record it, because the packet may be forged. */
  isFresh(counter: number): boolean {
    if (counter > this.#highest) return true;
    if (this.#highest - counter >= REPLAY_WINDOW) return false;
    return ((this.#words[Math.floor(counter / 32) % WINDOW_WORDS] as number) & (1 << (counter % 32))) === 0;
  }

  /** Records the counter of an authenticated packet. */
  mark(counter: number): void {
    if (counter > this.#highest) {
      const [last, next] = [Math.floor(this.#highest / 32), Math.floor(counter / 32)];
      for (let word = Math.max(last + 1, next - WINDOW_WORDS + 1); word <= next; word += 1)
        this.#words[word % WINDOW_WORDS] = 0;
      this.#highest = counter;
    }
    const word = Math.floor(counter / 32) % WINDOW_WORDS;
    this.#words[word] = (this.#words[word] as number) | (1 << (counter % 32));
  }
}

export class Session {
  readonly local: number;
  readonly isInitiator: boolean;
  /** When the keys were created, on the monotonic clock. */
  readonly createdAt: number;
  readonly #keys: SessionKeys;
  readonly #head = new Uint8Array(DATA.body);
  readonly #view = toView(this.#head);
  readonly #window = new ReplayWindow();
  #counter = 0;

  constructor(keys: SessionKeys, { isInitiator, createdAt }: { isInitiator: boolean; createdAt: number }) {
    this.local = keys.local;
    this.isInitiator = isInitiator;
    this.createdAt = createdAt;
    this.#keys = keys;
    this.#view.setUint32(0, TYPE.data, true);
    this.#view.setUint32(DATA.receiver, keys.remote, true);
  }

  /** False once all counters are used. */
  get canSend(): boolean {
    return this.#counter < REJECT_AFTER_MESSAGES;
  }

  /** Encrypts a packet, padded to 16 bytes, as a data message. Valid until the next packet of any session is encrypted or decrypted. */
  seal(plain: Uint8Array): Uint8Array {
    const padded = (plain.byteLength + 15) & ~15;
    const counter = this.#counter;
    this.#counter += 1;
    this.#view.setUint32(DATA.counter, counter >>> 0, true);
    this.#view.setUint32(DATA.counter + 4, Math.floor(counter / 2 ** 32), true);
    return seal(this.#head, { key: this.#keys.send, counter, plain, padded });
  }

  /** Decrypts the packet in a data message, with its padding; undefined if it is forged or was already received. */
  open(message: Uint8Array): Uint8Array | undefined {
    const view = toView(message);
    const counter = view.getUint32(DATA.counter, true) + view.getUint32(DATA.counter + 4, true) * 2 ** 32;
    if (counter >= REJECT_AFTER_MESSAGES || !this.#window.isFresh(counter)) return undefined;
    const plain = openSealed(this.#keys.receive, counter, message.subarray(DATA.body));
    if (plain) this.#window.mark(counter);
    return plain;
  }
}
