// Who is in the private network and who sees whom: peers by id, and directed tunnels between ids. Two peers see each other when a tunnel
// leads from one to the other, whichever way (facts/wire 2.2). In memory only: after a restart peers return and say it all again, and
// what they had continues in the meantime. Everything here is synchronous; judging who may is left to the peers' rules. [TL-8] .. [TL-14]
import {
  type CoordinateRequest,
  CoordinateResponse_PeerUpdate_Kind as Kind,
  type Node,
} from "#src/wire/gen/tailnet_pb.ts";
import { singleAddress } from "./addresses.ts";
import { Peer, type PeerHolder, type PeerOptions, type Response } from "./peer.ts";

/** Tunnels one peer may have open; a person's client has one for each workspace agent. */
const MAX_TUNNELS = 4096;

/** How long peers keep a partner whose connection to the coordinator was lost (facts/wire 2.2): the server may only have been started again. */
export const LOST_MS = 15 * 60_000;

const NO_PEERS: ReadonlySet<string> = new Set();

export type ShownPeer = { id: string; addresses: string[]; preferred_derp: number; tunnels_to: string[] };

/** The coordinators of other servers that share the network with this one: each knows the agents that are connected to it. */
export interface OtherCoordinators {
  /** A peer has joined here, perhaps in the place of an older stream of the same peer. */
  joined(peer: Peer, before: Peer | undefined): void;
  nodeChanged(peer: Peer): void;
  addTunnel(peer: Peer, agent_id: string): void;
  removeTunnel(peer: Peer, agent_id: string): void;
  leave(peer: Peer, isLost: boolean): void;
  /** The access of a lost client to this agent, or to all, has ended. */
  revoke(client_id: string, agent_id: string | undefined): void;
  forget(client_id: string): void;
}

export class Coordinator {
  readonly #peers = new Map<string, Peer>();
  /** Tunnels by source, and the same by destination. */
  readonly #from = new Map<string, Set<string>>();
  readonly #to = new Map<string, Set<string>>();
  /** Peers that were lost, and who was shown them and keeps them for a while. */
  readonly #lost = new Map<string, readonly string[]>();
  readonly #listeners = new Set<(id: string) => void>();
  /** Set once, where there are other servers. */
  others: OtherCoordinators | undefined;

  /** A new stream of this peer. One that it has already ends; its tunnels go on. */
  join(options: PeerOptions): Peer {
    const peer = new Peer(this, options);
    const before = this.#peers.get(peer.id);
    this.#peers.set(peer.id, peer);
    this.#lost.delete(peer.id);
    before?.overwrite();
    this.others?.joined(peer, before);
    peer.show(this.#iteratePartners(peer.id));
    return peer;
  }

  /** How many peers and tunnels there are, without those of other nodes. */
  get counts(): { peers: number; tunnels: number } {
    let [peers, tunnels] = [this.#peers.size, 0];
    for (const ids of this.#from.values()) tunnels += ids.size;
    for (const { id, isGuest } of this.#peers.values()) {
      if (!isGuest) continue;
      peers -= 1;
      tunnels -= this.#from.get(id)?.size ?? 0;
    }
    return { peers, tunnels };
  }

  /** Lists who is here and where their tunnels lead, for administrators. */
  shown(most: number): ShownPeer[] {
    const own = [...this.#peers.values()].filter(({ isGuest }) => !isGuest);
    return own.slice(0, most).map(({ id, known }) => ({
      id,
      addresses: known?.node.addresses ?? [],
      preferred_derp: known?.node.preferredDerp ?? 0,
      tunnels_to: [...(this.#from.get(id) ?? NO_PEERS)],
    }));
  }

  /** What this peer has last said it is; undefined when it is not there or has not said. */
  nodeOf(id: string): Node | undefined {
    return this.#peers.get(id)?.known?.node;
  }

  /** For whom the peer is that has this address and a tunnel with this one; undefined when none or several say that they have it. */
  holderAt(id: string, address: string): PeerHolder | undefined {
    const wanted = singleAddress(`${address}/128`);
    if (wanted === undefined) return undefined;
    const found = [...this.#iteratePartners(id)].filter(({ known }) =>
      known?.node.addresses.some((one) => singleAddress(one) === wanted),
    );
    return found.length === 1 ? found[0]?.holder : undefined;
  }

  /** Calls `listener` whenever a peer says what it is. Returns how to stop listening. */
  listen(listener: (id: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  nodeChanged(peer: Peer): void {
    if (this.#peers.get(peer.id) !== peer) return;
    for (const tell of this.#listeners) tell(peer.id);
    this.others?.nodeChanged(peer);
    for (const partner of this.#iteratePartners(peer.id)) partner.show([peer]);
  }

  /** Answers why not, when there are too many. The other end need not be there yet. */
  addTunnel(peer: Peer, id: string): string | undefined {
    const mine = this.#from.get(peer.id);
    if (mine?.has(id)) return undefined;
    if (mine && mine.size >= MAX_TUNNELS) return `more than ${MAX_TUNNELS} tunnels`;
    addTo(this.#from, peer.id, id);
    addTo(this.#to, id, peer.id);
    this.others?.addTunnel(peer, id);
    const other = this.#peers.get(id);
    if (!other) return undefined;
    peer.show([other]);
    other.show([peer]);
    return undefined;
  }

  removeTunnel(peer: Peer, id: string): void {
    if (!this.#from.get(peer.id)?.has(id)) return;
    this.#forget(peer.id, id);
    this.others?.removeTunnel(peer, id);
    // The other may have a tunnel back; then they still see each other.
    if (this.#areConnected(peer.id, id)) return;
    peer.hide(id, Kind.DISCONNECTED, "tunnel removed");
    this.#peers.get(id)?.hide(peer.id, Kind.DISCONNECTED, "tunnel removed");
  }

  /** Passes the agent's word on; false when the two share no tunnel or the other is not there. */
  tellReady(agent: Peer, id: string): boolean {
    const other = this.#peers.get(id);
    if (!other || !this.#areConnected(agent.id, id)) return false;
    other.ready(agent.id);
    return true;
  }

  /** The peer's stream is over: its partners hear of it, and the tunnels it had opened are forgotten. */
  leave(peer: Peer, kind: Kind.LOST | Kind.DISCONNECTED): void {
    if (this.#peers.get(peer.id) !== peer) return;
    this.#peers.delete(peer.id);
    const reason = kind === Kind.LOST ? "the peer's connection was lost" : "the peer has disconnected";
    const partners = [...this.#iteratePartners(peer.id)];
    if (kind === Kind.LOST && peer.isWatched)
      this.#lost.set(
        peer.id,
        partners.filter((one) => one.shown.has(peer.id)).map(({ id }) => id),
      );
    for (const partner of partners) partner.hide(peer.id, kind, reason);
    this.others?.leave(peer, kind === Kind.LOST);
    for (const id of [...(this.#from.get(peer.id) ?? NO_PEERS)]) this.#forget(peer.id, id);
  }

  /** True while partners may keep this peer although its connection was lost. */
  isLost(id: string): boolean {
    return this.#lost.has(id);
  }

  /** A lost peer may not return: its partners, or this one of them, hear that it has gone. */
  revoke(id: string, partner_id?: string): void {
    const keepers = this.#lost.get(id) ?? [];
    this.others?.revoke(id, partner_id);
    for (const keeper of keepers) {
      if (partner_id === undefined || keeper === partner_id) this.#peers.get(keeper)?.tellRevoked(id);
    }
  }

  /** No partner keeps it any longer. */
  forgetLost(id: string): void {
    this.#lost.delete(id);
    this.others?.forget(id);
  }

  /** One Coordinate stream, from end to end: what is to be sent to the peer. `joined` is notified of it first. */
  async *serve(
    options: PeerOptions,
    requests: AsyncIterable<CoordinateRequest>,
    signal: AbortSignal,
    joined?: (peer: Peer) => void,
  ): AsyncGenerator<Response, void, undefined> {
    const peer = this.join(options);
    joined?.(peer);
    signal.addEventListener("abort", () => peer.lost());
    void peer.serve(requests);
    try {
      yield* peer.responses();
    } finally {
      peer.lost();
    }
  }

  *#iteratePartners(id: string): Generator<Peer> {
    const out = this.#from.get(id) ?? NO_PEERS;
    for (const one of out) {
      const peer = this.#peers.get(one);
      if (peer) yield peer;
    }
    for (const one of this.#to.get(id) ?? NO_PEERS) {
      const peer = out.has(one) ? undefined : this.#peers.get(one);
      if (peer) yield peer;
    }
  }

  #areConnected(a: string, b: string): boolean {
    return (this.#from.get(a)?.has(b) ?? false) || (this.#from.get(b)?.has(a) ?? false);
  }

  #forget(source: string, destination: string): void {
    removeFrom(this.#from, source, destination);
    removeFrom(this.#to, destination, source);
  }
}

const addTo = (map: Map<string, Set<string>>, key: string, value: string): void => {
  const set = map.get(key);
  if (set) set.add(value);
  else map.set(key, new Set([value]));
};

const removeFrom = (map: Map<string, Set<string>>, key: string, value: string): void => {
  const set = map.get(key);
  set?.delete(value);
  if (set?.size === 0) map.delete(key);
};
