// One Coordinate stream: a peer that says what it is and which others it wants to see. Reads its requests in order and judges them by its
// rules; what others do reaches it through its queue. [TL-8] .. [TL-14]
import { fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { uuidBytes, uuidFromBytes } from "#base/ids.ts";
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

/** How many bytes a response takes on the wire, which is what it costs the queue of its peer. */
export const countResponseBytes = (response: CoordinateResponse): number =>
  toBinary(CoordinateResponseSchema, response).byteLength;

/** A node as one partner sends it; larger ones are refused. Genuine ones have some hundred bytes. */
const MAX_NODE = 64 * 1024;
/** What an update costs alongside its node. */
const UPDATE_BYTES = 64;

export const TOO_SLOW = "the peer does not read what it is sent";
export const OVERWRITTEN = "peer ID overwritten by new connection";

/** A node and its bytes, by which equal ones are known. */
export type KnownNode = { readonly node: Node; readonly bytes: Uint8Array };

/** For whom a client is in the network, and from where. */
export type PeerHolder = { readonly user_id: string; readonly ip: string | null; readonly user_agent: string };

export type PeerOptions = {
  id: string;
  rules: PeerRules;
  /** Undefined for agents, and for the server itself. */
  holder?: PeerHolder;
  /** Someone keeps watching its access after it was lost, and then calls `closeTunnel` or `Coordinator.forgetLost`. */
  isWatched?: boolean;
  /** The server's own: its tunnels lead to agents of this node alone. */
  staysHere?: boolean;
  /** A client that is at another node (`OtherCoordinators`), and is counted there. */
  isGuest?: boolean;
  /** Receives what the peer says it is. */
  changed?(node: Node): void;
  /** Called when the peer reads too slowly to be kept, with the reason. */
  dropped?(reason: string): void;
};

/** What a peer asks of the coordinator that holds it. */
export interface PeerHub {
  nodeChanged(peer: Peer): void;
  /** The reason when the tunnel is refused. */
  addTunnel(peer: Peer, id: string): string | undefined;
  removeTunnel(peer: Peer, id: string): void;
  /** False when no one waits for it. */
  tellReady(agent: Peer, id: string): boolean;
  leave(peer: Peer, kind: Kind.LOST | Kind.DISCONNECTED): void;
  revoke(id: string, partner_id?: string): void;
}

export class Peer {
  readonly id: string;
  /** What it last said it is. */
  known: KnownNode | undefined;
  /** The node that each partner was last shown as, by the partner's id. */
  readonly shown = new Map<string, KnownNode>();
  readonly #coordinator: PeerHub;
  readonly #options: PeerOptions;
  readonly #queue = new ResponseQueue<Response>();
  #over = false;

  constructor(coordinator: PeerHub, options: PeerOptions) {
    this.id = options.id;
    this.#coordinator = coordinator;
    this.#options = options;
  }

  get holder(): PeerHolder | undefined {
    return this.#options.holder;
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

  /** What is to be sent to the peer, to the end of its stream. */
  responses(): AsyncIterable<Response> {
    return this.#queue.take();
  }

  /** Handles requests until they end or break a rule; never rejects. A stream that ends without a word of farewell is lost. */
  async serve(requests: AsyncIterable<CoordinateRequest>): Promise<void> {
    try {
      for await (const request of requests) {
        const refusal = await this.#handle(request);
        if (refusal !== undefined) this.#end(Kind.LOST, refusal);
        if (this.#over) return;
      }
    } catch {
      // The caller has gone or sent what is no request; the call's own error tells it so.
    }
    this.lost();
  }

  /** The stream has ended without a farewell. Harmless when repeated. */
  lost(): void {
    this.#end(Kind.LOST);
  }

  /** Another stream with the same id has taken its place and its tunnels. */
  overwrite(): void {
    this.#over = true;
    this.#queue.close({ error: OVERWRITTEN });
  }

  /** The tunnel to this peer is closed for it, by someone else's decision; also when it was lost, and is only kept by the other. */
  closeTunnel(id: string): void {
    if (this.#over) this.#coordinator.revoke(this.id, id);
    else this.#coordinator.removeTunnel(this, id);
  }

  /** Shows it these partners' nodes, those it does not have yet, in one response. */
  show(partners: Iterable<Peer>): void {
    const updates: Update[] = [];
    let bytes = 0;
    for (const { id, known } of partners) {
      if (!known) continue;
      const before = this.shown.get(id);
      if (before && Buffer.compare(before.bytes, known.bytes) === 0) continue;
      this.shown.set(id, known);
      updates.push({ id: uuidBytes(id), kind: Kind.NODE, node: known.node });
      bytes += known.bytes.byteLength + UPDATE_BYTES;
    }
    if (updates.length > 0) this.send({ peerUpdates: updates }, bytes);
  }

  /** Tells it that a partner has gone; does nothing when it never heard of the partner. */
  hide(id: string, kind: Kind.LOST | Kind.DISCONNECTED, reason: string): void {
    if (!this.shown.delete(id)) return;
    this.send({ peerUpdates: [{ id: uuidBytes(id), kind, reason }] }, UPDATE_BYTES);
  }

  /** A peer that was lost, and that it may still have a tunnel with, may not be there any more. */
  tellRevoked(id: string): void {
    const update = { id: uuidBytes(id), kind: Kind.DISCONNECTED, reason: "access has ended" };
    this.send({ peerUpdates: [update] }, UPDATE_BYTES);
  }

  /** The agent with this id has set this peer up and waits for its handshake. */
  ready(agent_id: string): void {
    this.send({ peerUpdates: [{ id: uuidBytes(agent_id), kind: Kind.READY_FOR_HANDSHAKE }] }, UPDATE_BYTES);
  }

  send(response: Response, bytes: number): void {
    if (this.#over || this.#queue.put(response, bytes)) return;
    this.#end(Kind.LOST, TOO_SLOW);
    this.#options.dropped?.(TOO_SLOW);
  }

  /** Answers why the stream must end, if it must. Members come in one order, whatever order they were sent in (facts/wire 2.2). */
  async #handle(request: CoordinateRequest): Promise<string | undefined> {
    const { updateSelf, addTunnel, removeTunnel, disconnect, readyForHandshake } = request;
    const { rules } = this.#options;
    if (updateSelf) {
      const { node } = updateSelf;
      const refusal = node ? rules.refuseNode(node) : "an update without a node";
      if (refusal !== undefined || !node) return refusal;
      const bytes = toBinary(NodeSchema, node);
      if (bytes.byteLength > MAX_NODE) return `a node of ${bytes.byteLength} bytes is too large`;
      // A copy: the node that came may be a view of the whole request.
      this.known = { node: fromBinary(NodeSchema, bytes), bytes };
      this.#coordinator.nodeChanged(this);
      this.#options.changed?.(node);
    }
    if (addTunnel) {
      const id = parseId(addTunnel.id);
      if (id === undefined) return "a tunnel to no valid id";
      const refusal =
        (await rules.refuseTunnel(id)) ?? (this.#over ? undefined : this.#coordinator.addTunnel(this, id));
      if (refusal !== undefined) return refusal;
      if (this.#over) return undefined;
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
    if (readyForHandshake.length > 0 && !rules.mayBeReady) return "only agents send ready_for_handshake";
    for (const { id: raw } of readyForHandshake) this.#readyFor(parseId(raw));
    return undefined;
  }

  #readyFor(id: string | undefined): void {
    if (id !== undefined && this.#coordinator.tellReady(this, id)) return;
    this.send({ error: `ready for handshake error: you do not share a tunnel with ${id ?? "that id"}` }, UPDATE_BYTES);
  }

  #end(kind: Kind.LOST | Kind.DISCONNECTED, error?: string): void {
    if (this.#over) return;
    this.#over = true;
    this.#coordinator.leave(this, kind);
    this.#queue.close(error === undefined ? undefined : { error });
  }
}

const parseId = (bytes: Uint8Array): string | undefined => (bytes.byteLength === 16 ? uuidFromBytes(bytes) : undefined);
