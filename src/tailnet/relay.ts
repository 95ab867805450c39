// The embedded relay: a packet switch whose addresses are the peers' public keys. It sees ciphertext only and asks for no token; a client
// proves that it has the key it names (facts/wire 3). One relay, no mesh. Used by src/api/tailnet/derp.ts. [TL-3] .. [TL-6]
import type { Clock } from "#base/clock.ts";
import { type KeyPair, keyPair } from "./box.ts";
import { encodeFrame, FRAME, GONE } from "./derp-frame.ts";
import { RelayClient, type RelaySocket } from "./relay-client.ts";

/** Clients drop a relay that says nothing for 120 s. */
const KEEP_ALIVE_MS = 60_000;
const KEEP_ALIVE = encodeFrame(FRAME.keep_alive);

/** Anyone who has a key at the relay: a client behind a socket, or a peer of this process. */
export interface RelayMember {
  readonly key: Uint8Array;
  /** The key in hex. */
  readonly address: string;
  /** Addresses it has sent packets to; they hear when it goes. */
  readonly sentTo: ReadonlySet<string>;
  /** A short answer of the relay itself. */
  tell(frame: Uint8Array): void;
  /** A packet of another member. It may be a view of what came in: anyone who keeps it copies it. */
  receive(from: Uint8Array, packet: Uint8Array): void;
}

/** The relays of other servers that share the network with this one. */
export interface OtherRelays {
  joined(): void;
  pass(from: Uint8Array, address: string, packet: Uint8Array): boolean;
}

export class Relay {
  readonly clock: Clock;
  /** Fresh at every start: clients accept any key. */
  readonly key: KeyPair;
  /** Connections of each key, hex; the one that spoke last stands at the end and gets the packets. */
  readonly #clients = new Map<string, RelayMember[]>();
  /** Set once, where there are other servers. */
  others: OtherRelays | undefined;

  constructor(clock: Clock, key: KeyPair = keyPair()) {
    this.clock = clock;
    this.key = key;
    clock.every(KEEP_ALIVE_MS, () => {
      for (const clients of this.#clients.values()) for (const one of clients) one.tell(KEEP_ALIVE);
    });
  }

  /** A socket has opened; its messages go to the client that this answers. */
  connect(socket: RelaySocket): RelayClient {
    return new RelayClient(this, socket);
  }

  /** How many clients have introduced themselves, and how many keys they have. */
  get counts(): { clients: number; keys: number } {
    let clients = 0;
    for (const ofKey of this.#clients.values()) clients += ofKey.length;
    return { clients, keys: this.#clients.size };
  }

  /** The client has proved its key. */
  register(client: RelayMember): void {
    const others = this.#clients.get(client.address);
    if (others) others.push(client);
    else this.#clients.set(client.address, [client]);
    this.others?.joined();
  }

  /** It spoke: of several with its key it is now the one that gets packets. */
  spoke(client: RelayMember): void {
    const ofKey = this.#clients.get(client.address);
    if (!ofKey || ofKey.length < 2 || ofKey.at(-1) === client) return;
    ofKey.splice(ofKey.indexOf(client), 1);
    ofKey.push(client);
  }

  /** It has gone; its receivers hear of it, unless its key has another connection. */
  leave(client: RelayMember): void {
    const ofKey = this.#clients.get(client.address);
    const at = ofKey?.indexOf(client) ?? -1;
    if (!ofKey || at < 0) return;
    ofKey.splice(at, 1);
    if (ofKey.length > 0) return;
    this.#clients.delete(client.address);
    const gone = encodeFrame(FRAME.peer_gone, client.key, Uint8Array.of(GONE.disconnected));
    for (const address of client.sentTo) this.#clients.get(address)?.at(-1)?.tell(gone);
  }

  /** All keys, in hex. */
  get keys(): string[] {
    return [...this.#clients.keys()];
  }

  /** Hands a packet on; false when no client here has that key, and no other server is known to have it. */
  deliver({ key }: Pick<RelayMember, "key">, address: string, packet: Uint8Array): boolean {
    return this.hand(key, address, packet) || (this.others?.pass(key, address, packet) ?? false);
  }

  /** The same to anyone who is here. */
  hand(from: Uint8Array, address: string, packet: Uint8Array): boolean {
    const to = this.#clients.get(address)?.at(-1);
    to?.receive(from, packet);
    return to !== undefined;
  }
}
