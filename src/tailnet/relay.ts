// The embedded relay: a packet switch that addresses peers by public key. It sees only ciphertext and requires no token; a client proves
// that it has the private key (facts/wire 3). It does not join a mesh of relays. Used by src/api/tailnet/derp.ts. [TL-3] .. [TL-6]
import type { Clock } from "#base/clock.ts";
import { createKeyPair, type KeyPair } from "./box.ts";
import { encodeFrame, FRAME, PEER_GONE_REASON } from "./derp-frame.ts";
import { QueuePool } from "./packet-queue.ts";
import { RelayClient, type RelaySocket } from "./relay-client.ts";

/** Clients disconnect from a relay that is silent for 120 s. */
const KEEP_ALIVE_MS = 60_000;
const KEEP_ALIVE = encodeFrame(FRAME.keep_alive);

/** A peer at the relay: a client over a socket, or a peer in this process. */
export interface RelayMember {
  readonly key: Uint8Array;
  /** The key in hex. */
  readonly address: string;
  /** The addresses to which the member has sent packets, which are notified when it leaves. */
  readonly sentTo: ReadonlySet<string>;
  /** Sends the member a short frame of the relay itself. */
  sendControl(frame: Uint8Array): void;
  /** Sends the member a packet of another one. The packet may be a view of received bytes, which is valid until the function returns. */
  receive(from: Uint8Array, packet: Uint8Array): void;
}

/** The relays of other servers in the same network. */
export interface RemoteRelays {
  onJoined(): void;
  pass(from: Uint8Array, address: string, packet: Uint8Array): boolean;
}

export class Relay {
  readonly clock: Clock;
  /** Generated at every start, because clients accept any key. */
  readonly key: KeyPair;
  readonly pool = new QueuePool();
  /** Members by key in hex, ordered by last activity. The last one receives the packets for its key. */
  readonly #clients = new Map<string, RelayMember[]>();
  /** Set at the start if there are other servers. */
  others: RemoteRelays | undefined;

  constructor(clock: Clock, key: KeyPair = createKeyPair()) {
    this.clock = clock;
    this.key = key;
    clock.every(KEEP_ALIVE_MS, () => {
      for (const clients of this.#clients.values()) for (const client of clients) client.sendControl(KEEP_ALIVE);
    });
  }

  /** Returns the client for a new socket, which receives the socket's messages. */
  connect(socket: RelaySocket): RelayClient {
    return new RelayClient(this, socket);
  }

  /** Returns the number of introduced clients, and of their distinct keys. */
  get counts(): { clients: number; keys: number } {
    let clients = 0;
    for (const sameKey of this.#clients.values()) clients += sameKey.length;
    return { clients, keys: this.#clients.size };
  }

  /** Adds a client that has proved its key. */
  register(client: RelayMember): void {
    const others = this.#clients.get(client.address);
    if (others) others.push(client);
    else this.#clients.set(client.address, [client]);
    this.others?.onJoined();
  }

  /** Marks the client as the most recently active one with its key, so that it receives the packets for the key. */
  markActive(client: RelayMember): void {
    const sameKey = this.#clients.get(client.address);
    if (!sameKey || sameKey.length < 2 || sameKey.at(-1) === client) return;
    sameKey.splice(sameKey.indexOf(client), 1);
    sameKey.push(client);
  }

  /** Removes a client and notifies its receivers, unless another client has the same key. */
  unregister(client: RelayMember): void {
    const sameKey = this.#clients.get(client.address);
    const at = sameKey?.indexOf(client) ?? -1;
    if (!sameKey || at < 0) return;
    sameKey.splice(at, 1);
    if (sameKey.length > 0) return;
    this.#clients.delete(client.address);
    const peerGoneFrame = encodeFrame(FRAME.peer_gone, client.key, Uint8Array.of(PEER_GONE_REASON.disconnected));
    for (const address of client.sentTo) this.#clients.get(address)?.at(-1)?.sendControl(peerGoneFrame);
  }

  /** All keys, in hex. */
  get keys(): string[] {
    return [...this.#clients.keys()];
  }

  /** Delivers a packet to a local client or to another server. Returns false if neither is known to have a client with this address. */
  deliver({ key }: Pick<RelayMember, "key">, address: string, packet: Uint8Array): boolean {
    return this.deliverLocal(key, address, packet) || (this.others?.pass(key, address, packet) ?? false);
  }

  /** Delivers a packet to a local client only. */
  deliverLocal(from: Uint8Array, address: string, packet: Uint8Array): boolean {
    const to = this.#clients.get(address)?.at(-1);
    to?.receive(from, packet);
    return to !== undefined;
  }
}
