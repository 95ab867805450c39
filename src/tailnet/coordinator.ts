// The coordinator of the private network: peers by ID, and directed tunnels between IDs. Two peers see each other if there is a tunnel
// between them in either direction (facts/wire 2.2). State is in memory only: after a restart, peers reconnect and send their state again,
// and existing tunnels continue. All methods except `serve` are synchronous. Each peer's rules control its access. [TL-8] .. [TL-14]
import {
  type CoordinateRequest,
  CoordinateResponse_PeerUpdate_Kind as Kind,
  type Node,
} from "#src/wire/gen/tailnet_pb.ts";
import { parseSingleAddress } from "./addresses.ts";
import { KEY_BYTES } from "./box.ts";
import { Peer, type PeerHolder, type PeerOptions, type Response } from "./peer.ts";

/** Maximum number of tunnels per peer; a user's client has one for each workspace agent. */
const MAX_TUNNELS = 4096;

/**
 * How long peers keep a partner that lost its connection to the coordinator (facts/wire 2.2), because the server may only have restarted.
 */
export const LOST_TTL_MS = 15 * 60_000;

const NO_IDS: ReadonlySet<string> = new Set();

export type PeerSummary = { id: string; addresses: string[]; preferred_derp: number; tunnels_to: string[] };

/** The coordinators of other servers in the same network. Each knows the agents that are connected to it. */
export interface RemoteCoordinators {
  /** Called when a peer has joined here. `replaced` is an older stream of the same peer. */
  onJoin(peer: Peer, replaced: Peer | undefined): void;
  onNodeChange(peer: Peer): void;
  addTunnel(peer: Peer, agent_id: string): void;
  removeTunnel(peer: Peer, agent_id: string): void;
  removePeer(peer: Peer, isLost: boolean): void;
  /** Called when a lost client's access to this agent, or to all agents, was revoked. */
  revoke(client_id: string, agent_id: string | undefined): void;
  releaseLost(client_id: string): void;
}

export class Coordinator {
  readonly #peers = new Map<string, Peer>();
  /** The destinations of tunnels by source, and the sources by destination. */
  readonly #tunnelsFrom = new Map<string, Set<string>>();
  readonly #tunnelsTo = new Map<string, Set<string>>();
  /** Lost peers, and the partners that still keep them. */
  readonly #lost = new Map<string, readonly string[]>();
  readonly #listeners = new Set<(id: string) => void>();
  /** Set at the start if there are other servers. */
  others: RemoteCoordinators | undefined;
  /** The key that each connected peer has announced, in hex, by the peer's ID. */
  readonly #keys = new Map<string, { readonly key: string; readonly peer: Peer }>();
  /** The peers that have announced each key. */
  readonly #announcers = new Map<string, Set<Peer>>();

  /** Adds a new stream of this peer. An existing stream of the peer is ended; its tunnels are kept. */
  join(options: PeerOptions): Peer {
    const peer = new Peer(this, options);
    const replaced = this.#peers.get(peer.id);
    this.#peers.set(peer.id, peer);
    this.#addKey(peer);
    this.#lost.delete(peer.id);
    replaced?.replace();
    this.others?.onJoin(peer, replaced);
    peer.show(this.#iteratePartners(peer.id));
    return peer;
  }

  /** Returns the number of peers and tunnels, without the clients of other nodes. */
  get counts(): { peers: number; tunnels: number } {
    let [peers, tunnels] = [this.#peers.size, 0];
    for (const ids of this.#tunnelsFrom.values()) tunnels += ids.size;
    for (const { id, isGuest } of this.#peers.values()) {
      if (!isGuest) continue;
      peers -= 1;
      tunnels -= this.#tunnelsFrom.get(id)?.size ?? 0;
    }
    return { peers, tunnels };
  }

  /** Lists the peers and their tunnels, for administrators. */
  listPeers(limit: number): PeerSummary[] {
    const own = [...this.#peers.values()].filter(({ isGuest }) => !isGuest);
    return own.slice(0, limit).map(({ id, known }) => ({
      id,
      addresses: known?.node.addresses ?? [],
      preferred_derp: known?.node.preferredDerp ?? 0,
      tunnels_to: [...(this.#tunnelsFrom.get(id) ?? NO_IDS)],
    }));
  }

  /** Returns the last node that this peer sent; undefined if it is not connected or has sent none. */
  getNode(id: string): Node | undefined {
    return this.#peers.get(id)?.known?.node;
  }

  /** Returns whether a connected peer has announced this key (in hex). */
  isAnnounced(key: string): boolean {
    return this.#announcers.has(key);
  }

  /** Returns whose memory the connections with this announced key use: that of a peer that has announced it. */
  findMemoryHolder(key: string): string | undefined {
    for (const { memoryHolder } of this.#announcers.get(key) ?? []) if (memoryHolder !== undefined) return memoryHolder;
    return undefined;
  }

  #addKey(peer: Peer): void {
    this.#removeKey(peer.id);
    if (!peer.known) return;
    const key = Buffer.from(peer.known.node.key.subarray(-KEY_BYTES)).toString("hex");
    this.#keys.set(peer.id, { key, peer });
    this.#announcers.set(key, (this.#announcers.get(key) ?? new Set()).add(peer));
  }

  #removeKey(id: string): void {
    const announced = this.#keys.get(id);
    if (!announced) return;
    this.#keys.delete(id);
    const announcers = this.#announcers.get(announced.key);
    announcers?.delete(announced.peer);
    if (announcers?.size === 0) this.#announcers.delete(announced.key);
  }

  /** Returns the holder of the partner with this address; undefined if no partner or more than one claims it. */
  findHolder(id: string, address: string): PeerHolder | undefined {
    const wanted = parseSingleAddress(`${address}/128`);
    if (wanted === undefined) return undefined;
    const claimants = [...this.#iteratePartners(id)].filter(({ known }) =>
      known?.node.addresses.some((one) => parseSingleAddress(one) === wanted),
    );
    return claimants.length === 1 ? claimants[0]?.holder : undefined;
  }

  /** Calls `listener` whenever a peer sends its node. Returns a function that stops listening. */
  listen(listener: (id: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  onNodeChange(peer: Peer): void {
    if (this.#peers.get(peer.id) !== peer) return;
    this.#addKey(peer);
    for (const notify of this.#listeners) notify(peer.id);
    this.others?.onNodeChange(peer);
    for (const partner of this.#iteratePartners(peer.id)) partner.show([peer]);
  }

  /** Adds a tunnel from this peer; the other peer need not be connected yet. Returns an error if there are too many tunnels. */
  addTunnel(peer: Peer, id: string): string | undefined {
    const own = this.#tunnelsFrom.get(peer.id);
    if (own?.has(id)) return undefined;
    if (own && own.size >= MAX_TUNNELS) return `more than ${MAX_TUNNELS} tunnels`;
    addTo(this.#tunnelsFrom, peer.id, id);
    addTo(this.#tunnelsTo, id, peer.id);
    this.others?.addTunnel(peer, id);
    const other = this.#peers.get(id);
    if (!other) return undefined;
    peer.show([other]);
    other.show([peer]);
    return undefined;
  }

  removeTunnel(peer: Peer, id: string): void {
    if (!this.#tunnelsFrom.get(peer.id)?.has(id)) return;
    this.#deleteTunnel(peer.id, id);
    this.others?.removeTunnel(peer, id);
    // With a tunnel in the opposite direction, the two still see each other.
    if (this.#areConnected(peer.id, id)) return;
    peer.hide(id, Kind.DISCONNECTED, "tunnel removed");
    this.#peers.get(id)?.hide(peer.id, Kind.DISCONNECTED, "tunnel removed");
  }

  /** Forwards the agent's "ready" message to this peer. Returns false if they share no tunnel or the peer is not connected. */
  forwardReady(agent: Peer, id: string): boolean {
    const other = this.#peers.get(id);
    if (!other || !this.#areConnected(agent.id, id)) return false;
    other.sendReady(agent.id);
    return true;
  }

  /** Removes a peer whose stream has ended: notifies its partners and removes the tunnels that it had opened. */
  removePeer(peer: Peer, kind: Kind.LOST | Kind.DISCONNECTED): void {
    if (this.#peers.get(peer.id) !== peer) return;
    this.#peers.delete(peer.id);
    this.#removeKey(peer.id);
    const reason = kind === Kind.LOST ? "the peer's connection was lost" : "the peer has disconnected";
    const partners = [...this.#iteratePartners(peer.id)];
    if (kind === Kind.LOST && peer.isWatched)
      this.#lost.set(
        peer.id,
        partners.filter(({ shown }) => shown.has(peer.id)).map(({ id }) => id),
      );
    for (const partner of partners) partner.hide(peer.id, kind, reason);
    this.others?.removePeer(peer, kind === Kind.LOST);
    for (const id of [...(this.#tunnelsFrom.get(peer.id) ?? NO_IDS)]) this.#deleteTunnel(peer.id, id);
  }

  /** Returns whether partners may still keep this peer although its connection was lost. */
  isLost(id: string): boolean {
    return this.#lost.has(id);
  }

  /** Tells the partners of a lost peer, or only one of them, that the peer has lost its access. */
  revoke(id: string, partner_id?: string): void {
    const keepers = this.#lost.get(id) ?? [];
    this.others?.revoke(id, partner_id);
    for (const keeper of keepers) {
      if (partner_id === undefined || keeper === partner_id) this.#peers.get(keeper)?.sendRevoked(id);
    }
  }

  /** Removes a lost peer's record once its partners do not keep the peer any more. */
  releaseLost(id: string): void {
    this.#lost.delete(id);
    this.others?.releaseLost(id);
  }

  /** Serves one Coordinate stream: adds the peer, calls `joined`, and yields the responses for the peer. */
  async *serve(
    options: PeerOptions,
    requests: AsyncIterable<CoordinateRequest>,
    signal: AbortSignal,
    joined?: (peer: Peer) => void,
  ): AsyncGenerator<Response, void, undefined> {
    const peer = this.join(options);
    joined?.(peer);
    signal.addEventListener("abort", () => peer.onStreamLost());
    void peer.serve(requests);
    try {
      yield* peer.responses();
    } finally {
      peer.onStreamLost();
    }
  }

  *#iteratePartners(id: string): Generator<Peer> {
    const destinations = this.#tunnelsFrom.get(id) ?? NO_IDS;
    for (const destination of destinations) {
      const peer = this.#peers.get(destination);
      if (peer) yield peer;
    }
    for (const source of this.#tunnelsTo.get(id) ?? NO_IDS) {
      const peer = destinations.has(source) ? undefined : this.#peers.get(source);
      if (peer) yield peer;
    }
  }

  #areConnected(a: string, b: string): boolean {
    return (this.#tunnelsFrom.get(a)?.has(b) ?? false) || (this.#tunnelsFrom.get(b)?.has(a) ?? false);
  }

  #deleteTunnel(source: string, destination: string): void {
    removeFrom(this.#tunnelsFrom, source, destination);
    removeFrom(this.#tunnelsTo, destination, source);
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
