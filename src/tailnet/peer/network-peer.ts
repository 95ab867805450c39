// A peer of the private network: sends its node to the coordinator, gets the nodes of others, and has a tunnel to each of them. An agent
// accepts connections and reports that it is ready for a handshake; a client requests tunnels and dials. Tunnels survive the loss of the
// connection to the coordinator, so a restart of the server ends no session. [TL-27] [TL-28]
import type { Clock } from "#base/clock.ts";
import { generateBytes, uuidFromBytes, uuidToBytes } from "#base/ids.ts";
import { log } from "#base/log.ts";
import type { Random } from "#base/random.ts";
import {
  type CoordinateResponse_PeerUpdate,
  CoordinateResponse_PeerUpdate_Kind as Kind,
  type Node,
} from "#src/wire/gen/tailnet_pb.ts";
import { type createTailnetClient, WireError } from "#src/wire/index.ts";
import { createKeyPair, type KeyPair } from "../box.ts";
import { LOST_TTL_MS } from "../coordinator.ts";
import { RELAY_REGION } from "../derp-map.ts";
import { toAddressKey } from "../packets/ip6.ts";
import type { Datagram } from "../packets/udp.ts";
import type { TcpConnection } from "../tcp/connection.ts";
import { HandshakeLoad } from "../wireguard/load.ts";
import { CookieIssuer, MacKeys } from "../wireguard/macs.ts";
import { equal } from "../wireguard/primitives.ts";
import { Tai64n } from "../wireguard/stamps.ts";
import { findDiscoverySender } from "./disco.ts";
import { type KnownPeer, toAgentAddressBytes, toNode, toPeer } from "./node.ts";
import type { Link } from "./relay-link.ts";
import { type AcceptFrom, Remote, type RemoteHost } from "./remote.ts";

export type NetworkPeerOptions = {
  clock: Clock;
  random: Random;
  role: "agent" | "client";
  /** This peer's addresses, 16 bytes each; outgoing connections use the first. */
  addresses: readonly Uint8Array[];
  /** Creates the link to the relay for this key. The link calls `onConnected` when the relay has accepted it, also after each reconnect. */
  link(key: KeyPair, receive: (from: Uint8Array, packet: Uint8Array) => void, onConnected: () => void): Link;
  accept: AcceptFrom;
  datagram?(from: Remote, datagram: Datagram, answer: (data: Uint8Array) => void): void;
  endOfTurn?(run: () => void): void;
  /** Maximum number of concurrent tunnels. */
  max_remotes?: number;
  /** If false, TCP segments have the standard maximum size, as in other implementations. For measurements. */
  hasLargeSegments?: boolean;
};

export type Coordinator = Pick<ReturnType<typeof createTailnetClient>, "coordinate">;

/** Default maximum number of concurrent tunnels. */
const MAX_REMOTES = 512;
/** A partner whose node does not arrive within this time after a reconnect of this peer has left. */
const ABSENT_TIMEOUT_MS = 2 * 60_000;
const TICK_MS = 1_000;
/** How long a client waits for an agent's node, and after that for the agent to report that it is ready. */
const APPEAR_TIMEOUT_MS = 15_000;
const READY_TIMEOUT_MS = 5_000;

type Call = Awaited<ReturnType<Coordinator["coordinate"]>>;

export class NetworkPeer {
  readonly #options: NetworkPeerOptions;
  readonly key: KeyPair = createKeyPair();
  readonly #disco: KeyPair = createKeyPair();
  readonly #link: Link;
  readonly #ownAddresses: ReadonlySet<string>;
  readonly #host: RemoteHost;
  readonly #byId = new Map<string, Remote>();
  readonly #byKey = new Map<string, Remote>();
  /** Deadlines until which lost partners are kept, by ID. They never become later. */
  readonly #lost = new Map<string, number>();
  /** IDs of the agents that have reported that they are ready. */
  readonly #ready = new Set<string>();
  /** IDs of the agents to which tunnels were requested. */
  readonly #requested = new Set<string>();
  /** Functions that wake callers of `find`. */
  readonly #waiting = new Set<() => void>();
  readonly #ticker: { cancel(): void };
  readonly #maxRemotes: number;
  #isClosed = false;
  /** The sender of the last packet, which usually also sends the next one. */
  #latest: Remote | undefined;
  #call: Call | undefined;

  constructor(options: NetworkPeerOptions) {
    const { clock, random, accept, datagram, endOfTurn = setImmediate, hasLargeSegments = true } = options;
    this.#options = options;
    this.#ownAddresses = new Set(options.addresses.map(toAddressKey));
    this.#maxRemotes = options.max_remotes ?? MAX_REMOTES;
    const load = new HandshakeLoad(clock);
    this.#host = {
      clock,
      random,
      accept,
      endOfTurn,
      hasLargeSegments,
      disco: this.#disco,
      ...(datagram ? { datagram } : {}),
      tunnels: {
        clock,
        random,
        key: this.key,
        stamps: new Tai64n(clock),
        cookies: new CookieIssuer(clock, new MacKeys(this.key.public)),
        isUnderLoad: () => load.countInitiation(),
      },
      transmit: (to, message) => this.#link.send(to, message),
      isOwn: (address) => this.#ownAddresses.has(address),
    };
    this.#link = options.link(
      this.key,
      (from, packet) => this.#receive(from, packet),
      () => this.#resume(),
    );
    this.#ticker = clock.every(TICK_MS, () => this.#onTick());
  }

  /** True once this peer has disconnected. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The peers with which this one has tunnels. */
  get remotes(): readonly Remote[] {
    return [...this.#byId.values()];
  }

  /**
   * Exchanges nodes with the coordinator over one connection, until the connection ends. May be called again with a new connection: tunnels
   * and the connections in them continue. Throws the connection's error.
   */
  async run(coordinator: Coordinator): Promise<void> {
    await this.#link.ready;
    const call = await coordinator.coordinate();
    this.#call = call;
    // A partner whose node does not arrive again has left while this peer was disconnected. That holds for lost ones, too: this coordinator
    // may be a new one that does not know them, and would not say that one has lost its access.
    for (const id of this.#byId.keys()) this.#markLost(id, ABSENT_TIMEOUT_MS);
    try {
      await call.send({
        updateSelf: {
          node: toNode(
            { key: this.key.public, disco: this.#disco.public, addresses: this.#options.addresses },
            this.#options.clock,
          ),
        },
      });
      for (const id of this.#requested) await call.send({ addTunnel: { id: uuidToBytes(id) } });
      for await (const { error, peerUpdates } of call) {
        if (error !== "") log("tailnet").warn("the coordinator refuses: {error}", { error });
        for (const update of peerUpdates) await this.#handleUpdate(update, call);
      }
    } finally {
      if (this.#call === call) this.#call = undefined;
    }
  }

  /** Requests a tunnel to an agent, on this connection to the coordinator and on all later ones. */
  async requestTunnel(agent_id: string): Promise<void> {
    if (this.#requested.has(agent_id)) return;
    this.#requested.add(agent_id);
    await this.#call?.send({ addTunnel: { id: uuidToBytes(agent_id) } });
  }

  /** Closes a tunnel and breaks its connections. */
  async closeTunnel(agent_id: string): Promise<void> {
    this.#requested.delete(agent_id);
    this.#removePeer(agent_id, "The tunnel was closed.");
    await this.#call?.send({ removeTunnel: { id: uuidToBytes(agent_id) } });
  }

  /** Resolves with the agent once it is reachable. Throws WireError `timeout` if its node does not arrive. */
  async find(agent_id: string, signal?: AbortSignal): Promise<Remote> {
    await this.requestTunnel(agent_id);
    const { clock } = this.#options;
    let deadline = clock.monotonic() + APPEAR_TIMEOUT_MS;
    let seen: Remote | undefined;
    for (;;) {
      const remote = this.#byId.get(agent_id);
      if (remote && this.#ready.has(agent_id)) return remote;
      if (remote && !seen) deadline = clock.monotonic() + READY_TIMEOUT_MS;
      seen = remote;
      const remainingMs = deadline - clock.monotonic();
      if (signal?.aborted) throw new WireError("closed", "The connection was canceled.");
      // An agent that never reports that it is ready may be ready nevertheless (facts/wire 2.2).
      if (remainingMs <= 0 && remote) return remote;
      if (remainingMs <= 0) throw new WireError("timeout", "The agent is not connected to the network.");
      await this.#waitForChange(remainingMs, signal);
    }
  }

  /** Connects to a port of an agent. Throws WireError: `timeout`, `refused`, `closed`. */
  async dial(agent_id: string, port: number, signal?: AbortSignal): Promise<TcpConnection> {
    const remote = await this.find(agent_id, signal);
    return await remote.tcp.connect(this.getAddressPair(agent_id), port, signal);
  }

  /** Returns the round-trip time to an agent in milliseconds; undefined if it does not answer within `timeout_ms`. */
  async ping(agent_id: string, timeout_ms: number): Promise<number | undefined> {
    const remote = await this.find(agent_id);
    return await remote.ping(this.getAddressPair(agent_id), generateBytes(8), timeout_ms);
  }

  getAddressPair(agent_id: string): { source: Uint8Array; target: Uint8Array } {
    return { source: this.#options.addresses[0] as Uint8Array, target: toAgentAddressBytes(agent_id)[0] as Uint8Array };
  }

  /** Disconnects from the network and breaks all connections. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const id of [...this.#byId.keys()]) this.#removePeer(id, "This side has ended.");
    this.#ticker.cancel();
    await this.#call?.send({ disconnect: {} }).catch(() => {});
    this.#link.close();
  }

  async #handleUpdate({ id: bytes, kind, node }: CoordinateResponse_PeerUpdate, call: Call): Promise<void> {
    if (bytes.byteLength !== 16) return;
    const id = uuidFromBytes(bytes);
    if (kind === Kind.NODE && node) {
      this.#updatePeer(id, node);
      if (this.#options.role === "agent") await call.send({ readyForHandshake: [{ id: bytes }] });
    } else if (kind === Kind.READY_FOR_HANDSHAKE) this.#ready.add(id);
    else if (kind === Kind.DISCONNECTED) this.#removePeer(id, "The peer has left, or may not be here any more.");
    else if (kind === Kind.LOST) this.#markLost(id, LOST_TTL_MS);
    this.#wakeWaiting();
  }

  #updatePeer(id: string, node: Node): void {
    const known = toPeer(node);
    if (!known) return;
    const holder = this.#byKey.get(toHex(known.key));
    // A new ID gets an existing key only after the peer with that key was lost. Otherwise a peer could disrupt another one's tunnel.
    if (holder && holder.id !== id && !this.#lost.has(holder.id)) return;
    const before = this.#byId.get(id);
    if (before && before !== holder) this.#removePeer(id, "The peer has started again.");
    if (holder) this.#adoptPeer(holder, id, known);
    else if (this.#byId.size < this.#maxRemotes || this.#removeOldestLost()) {
      const remote = new Remote(id, known, this.#host);
      this.#byId.set(id, remote);
      this.#byKey.set(toHex(known.key), remote);
    } else log("tailnet").warn("there are {count} tunnels already, {id} gets none", { count: this.#maxRemotes, id });
  }

  /** Keeps the tunnel of a peer that has returned with the same key. */
  #adoptPeer(remote: Remote, id: string, known: KnownPeer): void {
    this.#lost.delete(remote.id);
    this.#byId.delete(remote.id);
    remote.id = id;
    this.#byId.set(id, remote);
    remote.update(known);
  }

  #removePeer(id: string, reason: string): void {
    const remote = this.#byId.get(id);
    this.#lost.delete(id);
    this.#ready.delete(id);
    if (!remote) return;
    this.#byId.delete(id);
    this.#byKey.delete(toHex(remote.key));
    if (this.#latest === remote) this.#latest = undefined;
    remote.close(reason);
  }

  #markLost(id: string, ttlMs: number): void {
    const deadline = this.#options.clock.monotonic() + ttlMs;
    if (this.#byId.has(id)) this.#lost.set(id, Math.min(deadline, this.#lost.get(id) ?? deadline));
  }

  /** Removes the peer that was lost first. */
  #removeOldestLost(): boolean {
    const [first] = this.#lost.keys();
    if (first !== undefined) this.#removePeer(first, "The peer was lost.");
    return first !== undefined;
  }

  #onTick(): void {
    for (const remote of this.#byId.values()) remote.tunnel.tick();
    const now = this.#options.clock.monotonic();
    for (const [id, deadline] of this.#lost) if (now >= deadline) this.#removePeer(id, "The peer was lost.");
  }

  #receive(from: Uint8Array, packet: Uint8Array): void {
    const remote = this.#latest && equal(from, this.#latest.key) ? this.#latest : this.#byKey.get(toHex(from));
    if (!remote) return;
    this.#latest = remote;
    const sender = findDiscoverySender(packet);
    if (!sender) remote.tunnel.push(packet);
    else {
      const answer = remote.answerDiscovery(sender, packet, RELAY_REGION);
      if (answer) this.#link.send(from.slice(), answer);
    }
  }

  #resume(): void {
    for (const remote of this.#byId.values()) remote.tcp.resume();
  }

  #wakeWaiting(): void {
    for (const wake of this.#waiting) wake();
  }

  #waitForChange(ms: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        timer.cancel();
        signal?.removeEventListener("abort", wake);
        this.#waiting.delete(wake);
        resolve();
      };
      const timer = this.#options.clock.after(ms, wake);
      signal?.addEventListener("abort", wake, { once: true });
      this.#waiting.add(wake);
    });
  }
}

const toHex = (key: Uint8Array): string => Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString("hex");
