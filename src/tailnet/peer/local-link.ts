// Connects a peer to the relay of the same process, without a socket, frames, or a proof of its key. [TL-30]
import type { KeyPair } from "../box.ts";
import type { Relay, RelayMember } from "../relay.ts";
import type { Link } from "./relay-link.ts";

export type LocalLinkOptions = {
  relay: Relay;
  key: KeyPair;
  receive(from: Uint8Array, packet: Uint8Array): void;
};

export class LocalLink implements Link, RelayMember {
  readonly ready = Promise.resolve();
  readonly key: Uint8Array;
  readonly address: string;
  /** Always empty: the coordinator notifies partners when this peer leaves. */
  readonly sentTo: ReadonlySet<string> = new Set();
  readonly #options: LocalLinkOptions;
  /** Number of packets without a receiver. */
  dropped = 0;

  constructor(options: LocalLinkOptions) {
    this.#options = options;
    this.key = options.key.public;
    this.address = toHex(this.key);
    options.relay.register(this);
  }

  send(to: Uint8Array, packet: Uint8Array): void {
    if (!this.#options.relay.deliver(this, toHex(to), packet)) this.dropped += 1;
  }

  receive(from: Uint8Array, packet: Uint8Array): void {
    this.#options.receive(from, packet);
  }

  sendControl(): void {
    // The relay's information frames are irrelevant to a peer of the same process.
  }

  close(): void {
    this.#options.relay.unregister(this);
  }
}

const toHex = (key: Uint8Array): string => Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString("hex");
