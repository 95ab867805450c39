// One Coordinate stream: a peer that sends its node and requests tunnels. Handles the peer's requests in order and checks them against its
// rules. Changes of other peers are sent to it through a queue. [TL-8] .. [TL-14]
import { fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { uuidFromBytes, uuidToBytes } from "#base/ids.ts";
import {
  type CoordinateRequest,
  type CoordinateResponse,
  type CoordinateResponse_PeerUpdateSchema,
  CoordinateResponseSchema,
  CoordinateResponse_PeerUpdate_Kind as Kind,
  type Node,
  NodeSchema,
} from "#src/wire/gen/tailnet_pb.ts";
import type { PeerRules } from "./peer-rules.ts";
import { ResponseQueue } from "./response-queue.ts";

export type Response = MessageInitShape<typeof CoordinateResponseSchema>;
type Update = MessageInitShape<typeof CoordinateResponse_PeerUpdateSchema>;

/** Returns the size of a response on the wire, which is its cost in the peer's queue. */
export const countResponseBytes = (response: CoordinateResponse): number =>
  toBinary(CoordinateResponseSchema, response).byteLength;

/** Maximum size of a node from a peer. Real nodes have a few hundred bytes. */
const MAX_NODE_BYTES = 64 * 1024;
/** Cost of an update in addition to its node. */
const UPDATE_BYTES = 64;

export const TOO_SLOW_REASON = "the peer does not read what it is sent";
export const OVERWRITTEN_REASON = "peer ID overwritten by new connection";

/** A node and its bytes, for comparison. */
export type KnownNode = { readonly node: Node; readonly bytes: Uint8Array };

/** The user of a client in the network, and their address. */
export type PeerHolder = { readonly user_id: string; readonly ip: string | null; readonly user_agent: string };

export type PeerOptions = {
  id: string;
  rules: PeerRules;
  /** Undefined for agents, and for the server's own peer. */
  holder?: PeerHolder;
  /** Whose memory an agent's connections use; a client's use that of its holder. */
  memoryHolder?: string | undefined;
  /** The caller watches the peer's access even after the peer is lost, and then calls `closeTunnel` or `Coordinator.releaseLost`. */
  isWatched?: boolean;
  /** The server's own peer: its tunnels lead only to agents of this node. */
  staysHere?: boolean;
  /** A client that is connected to another node (`RemoteCoordinators`), where it is counted. */
  isGuest?: boolean;
  /** Called with each node that the peer sends. */
  changed?(node: Node): void;
  /** Called with the reason when the peer is dropped because it reads too slowly. */
  dropped?(reason: string): void;
};

/** The coordinator's interface for its peers. */
export interface PeerHub {
  onNodeChange(peer: Peer): void;
  /** Returns the reason if the tunnel is refused; undefined if it was added. */
  addTunnel(peer: Peer, id: string): string | undefined;
  removeTunnel(peer: Peer, id: string): void;
  /** Returns false if the two share no tunnel or the other peer is not connected. */
  forwardReady(agent: Peer, id: string): boolean;
  removePeer(peer: Peer, kind: Kind.LOST | Kind.DISCONNECTED): void;
  revoke(id: string, partner_id?: string): void;
}

export class Peer {
  readonly id: string;
  /** The last node that this peer sent. */
  known: KnownNode | undefined;
  /** The last node sent to this peer for each partner, by the partner's ID. */
  readonly shown = new Map<string, KnownNode>();
  readonly #coordinator: PeerHub;
  readonly #options: PeerOptions;
  readonly #queue = new ResponseQueue<Response>();
  #isEnded = false;

  constructor(coordinator: PeerHub, options: PeerOptions) {
    this.id = options.id;
    this.#coordinator = coordinator;
    this.#options = options;
  }

  get holder(): PeerHolder | undefined {
    return this.#options.holder;
  }

  get memoryHolder(): string | undefined {
    return this.#options.memoryHolder ?? this.holder?.user_id;
  }

  get isWatched(): boolean {
    return this.#options.isWatched === true;
  }

  get staysHere(): boolean {
    return this.#options.staysHere === true || this.isGuest;
  }

  get isGuest(): boolean {
    return this.#options.isGuest === true;
  }

  /** Yields the responses for the peer until its stream ends. */
  responses(): AsyncIterable<Response> {
    return this.#queue.take();
  }

  /** Handles requests until they end or violate a rule. Never rejects. A stream that ends without a disconnect message counts as lost. */
  async serve(requests: AsyncIterable<CoordinateRequest>): Promise<void> {
    try {
      for await (const request of requests) {
        const refusal = await this.#handle(request);
        if (refusal !== undefined) this.#end(Kind.LOST, refusal);
        if (this.#isEnded) return;
      }
    } catch {
      // The caller has disconnected or sent an invalid request, which its own call reports.
    }
    this.onStreamLost();
  }

  /** Called when the stream has ended without a disconnect message. Can be called more than once. */
  onStreamLost(): void {
    this.#end(Kind.LOST);
  }

  /** Called when another stream with the same ID has replaced this one and has taken over its tunnels. */
  replace(): void {
    this.#isEnded = true;
    this.#queue.close({ error: OVERWRITTEN_REASON });
  }

  /**
   * Closes the tunnel from this peer to the one with this ID because access has ended. Also works after this peer was lost, while the other
   * one still keeps it.
   */
  closeTunnel(id: string): void {
    if (this.#isEnded) this.#coordinator.revoke(this.id, id);
    else this.#coordinator.removeTunnel(this, id);
  }

  /** Sends this peer the partners' nodes that it does not have yet, in one response. */
  show(partners: Iterable<Peer>): void {
    const updates: Update[] = [];
    let bytes = 0;
    for (const { id, known } of partners) {
      if (!known) continue;
      const before = this.shown.get(id);
      if (before && Buffer.compare(before.bytes, known.bytes) === 0) continue;
      this.shown.set(id, known);
      updates.push({ id: uuidToBytes(id), kind: Kind.NODE, node: known.node });
      bytes += known.bytes.byteLength + UPDATE_BYTES;
    }
    if (updates.length > 0) this.send({ peerUpdates: updates }, bytes);
  }

  /** Reports that a partner has left, unless this peer never got the partner's node. */
  hide(id: string, kind: Kind.LOST | Kind.DISCONNECTED, reason: string): void {
    if (!this.shown.delete(id)) return;
    this.send({ peerUpdates: [{ id: uuidToBytes(id), kind, reason }] }, UPDATE_BYTES);
  }

  /** Reports that a lost peer, with which this one may still have a tunnel, has lost its access. */
  sendRevoked(id: string): void {
    const update = { id: uuidToBytes(id), kind: Kind.DISCONNECTED, reason: "access has ended" };
    this.send({ peerUpdates: [update] }, UPDATE_BYTES);
  }

  /** Reports that the agent with this ID has set up this peer and waits for its handshake. */
  sendReady(agent_id: string): void {
    this.send({ peerUpdates: [{ id: uuidToBytes(agent_id), kind: Kind.READY_FOR_HANDSHAKE }] }, UPDATE_BYTES);
  }

  send(response: Response, bytes: number): void {
    if (this.#isEnded || this.#queue.put(response, bytes)) return;
    this.#end(Kind.LOST, TOO_SLOW_REASON);
    this.#options.dropped?.(TOO_SLOW_REASON);
  }

  /**
   * Handles a request. Returns a reason if the stream must end. Fields are handled in a fixed order, regardless of their order in the
   * request (facts/wire 2.2).
   */
  async #handle(request: CoordinateRequest): Promise<string | undefined> {
    const { updateSelf, addTunnel, removeTunnel, disconnect, readyForHandshake } = request;
    const { rules } = this.#options;
    if (updateSelf) {
      const { node } = updateSelf;
      const refusal = node ? rules.refuseNode(node) : "an update without a node";
      if (refusal !== undefined || !node) return refusal;
      const bytes = toBinary(NodeSchema, node);
      if (bytes.byteLength > MAX_NODE_BYTES) return `a node of ${bytes.byteLength} bytes is too large`;
      // A copy, because the received node may be a view that retains the whole request.
      this.known = { node: fromBinary(NodeSchema, bytes), bytes };
      this.#coordinator.onNodeChange(this);
      this.#options.changed?.(node);
    }
    if (addTunnel) {
      const id = parseId(addTunnel.id);
      if (id === undefined) return "a tunnel to no valid id";
      const refusal =
        (await rules.refuseTunnel(id)) ?? (this.#isEnded ? undefined : this.#coordinator.addTunnel(this, id));
      if (refusal !== undefined) return refusal;
      if (this.#isEnded) return undefined;
    }
    if (removeTunnel) {
      const id = parseId(removeTunnel.id);
      if (id === undefined) return "a tunnel to no valid id";
      this.#coordinator.removeTunnel(this, id);
    }
    if (disconnect) {
      this.#end(Kind.DISCONNECTED);
      return undefined;
    }
    if (readyForHandshake.length > 0 && !rules.canSendReady) return "only agents send ready_for_handshake";
    for (const { id: raw } of readyForHandshake) this.#forwardReady(parseId(raw));
    return undefined;
  }

  #forwardReady(id: string | undefined): void {
    if (id !== undefined && this.#coordinator.forwardReady(this, id)) return;
    this.send({ error: `ready for handshake error: you do not share a tunnel with ${id ?? "that id"}` }, UPDATE_BYTES);
  }

  #end(kind: Kind.LOST | Kind.DISCONNECTED, error?: string): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#coordinator.removePeer(this, kind);
    this.#queue.close(error === undefined ? undefined : { error });
  }
}

const parseId = (bytes: Uint8Array): string | undefined => (bytes.byteLength === 16 ? uuidFromBytes(bytes) : undefined);
