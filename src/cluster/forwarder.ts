// The listener of a spare: it forwards every connection to the active node, byte by byte in both directions, whatever protocol follows the
// first head (HTTP, event streams, WebSockets, tunnels). Backpressure applies in both directions, so nothing is lost, and buffering is
// bounded by the two sockets.
import type { X509Certificate } from "node:crypto";
import type { Socket, TCPSocketListener } from "bun";
import type { Clock } from "#base/clock.ts";
import { sha256 } from "#base/ids.ts";
import { pause } from "#base/retry.ts";
import { FIRST_SHARD } from "#base/shards.ts";
import { directToSecondListener, stopAccepting } from "#base/system/same-port.ts";
import type { NodeState } from "#schema/readiness.ts";
import { formatDecline } from "./answer-head.ts";
import { forwardToActive, type WatchedNode } from "./ask-active.ts";
import { KEEP_ALIVE_MS, type NodeAddress, type NodeListener, parseNodeAddress } from "./connect.ts";
import { isAskedByNode, parseForwardedAddress } from "./forwarded-header.ts";
import { GoneNodeWatcher } from "./gone-nodes.ts";
import { CONTINUE_RESPONSE, HEALTHY_RESPONSE, type Head, MAX_HEAD_BYTES, readHead, toPlainResponse } from "./head.ts";
import { Link, MAX_BUFFERED_BYTES } from "./link.ts";
import { answerLocally } from "./local-first.ts";
import { LINK_PATH, parseLinkSender } from "./node-head.ts";
import type { WireSocket } from "./node-wire.ts";
import { parseCertificate } from "./peer.ts";
import { readinessOfSpare } from "./readiness.ts";

const SERVER_REPLACED = "The server was just replaced. Send the request again.";
const NODE_STOPPING = "This node is stopping.";
const TOO_MANY_REQUESTS = "The server has too many open requests.";
/** Timeout for a client's first head. */
const HEAD_TIMEOUT_MS = 10_000;
/** Connections beyond `max_connections` whose heads are read because they may be health checks, and the timeout for that. */
const MAX_PROBES = 32;
const PROBE_HEAD_TIMEOUT_MS = 2_000;
/** Grace period for connections that are on their way to a listener about to close. */
const LISTENER_GRACE_MS = 250;
/** How often a leaving node checks whether it is still needed, and how long no new client must have connected. */
const CHECK_INTERVAL_MS = 50;
const QUIET_PERIOD_MS = 1_000;
/** How long to wait for a client that has closed its side after its request. */
const HALF_CLOSE_TIMEOUT_MS = 1_000;

export type ForwarderOptions = ListenerOptions & (ActiveNodes | { readonly shards: ShardNodes });

type ListenerOptions = {
  readonly hostname: string;
  readonly port: number;
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  readonly clock: Clock;
  readonly max_connections: number;
  /** Returns whether the Host header names this server, which answers to no other. */
  isOurs(host: string): boolean;
  /** Proves to the active node that a node of its cluster forwarded the request. */
  readonly token: string;
  /** Called when another node has asked for a link and presented the token; returns the listener for the socket (node-link.ts). */
  onNode?(socket: WireSocket, from: string): NodeListener;
  /** Returns where this node serves reads itself; undefined while it does not. */
  reads?(): NodeAddress | undefined;
  /** Returns this node's state for `/readyz`, in addition to whether it is ready. */
  state(): NodeState;
};

/** Used when one node is active. */
type ActiveNodes = {
  /** Returns host:port of the active node; undefined while none exists, or when it is this one. */
  leader(): string | undefined;
  /** Returns host:port of this node once it is active and listens itself. */
  own(): string;
  readonly shards?: undefined;
};

/** Used when several nodes are active. */
export type ShardNodes = {
  /** Returns the address of this node's own server, which rejects requests for other nodes; undefined after it stops accepting requests. */
  here(): NodeAddress | undefined;
  /** Returns whether this node owns the shard. */
  has(shard: number): boolean;
  /** Returns host:port of the other node that owns the shard; undefined while none exists. */
  addressOf(shard: number): string | undefined;
  /**
   * Returns the incarnation of the node with a lease at this address. It changes after another node has taken over and the node has come
   * back. Undefined if no node there has a lease.
   */
  lifeAt(address: string): number | undefined;
  /**
   * Returns the shard of a request from its head; undefined if any node can handle it or the shard is unknown now. The node that is asked
   * checks for itself.
   */
  readonly shardOf?: ((request: Request) => Promise<number | undefined>) | undefined;
};

export class Forwarder {
  readonly #options: ForwarderOptions;
  readonly #links = new Set<Link>();
  /** The links beyond `max_connections`. */
  readonly #excessLinks = new Set<Link>();
  readonly #listener: TCPSocketListener<Link>;
  readonly #certificate: X509Certificate | undefined;
  readonly #digest: string;
  readonly #goneNodes: GoneNodeWatcher;
  #hasHandedOff = false;
  #isDraining = false;
  /** Monotonic time of the last client whose request was forwarded. */
  #last_client_at = Number.NEGATIVE_INFINITY;

  constructor(options: ForwarderOptions) {
    this.#options = options;
    this.#digest = sha256(options.token);
    this.#goneNodes = new GoneNodeWatcher(options.clock);
    this.#certificate = options.tls && parseCertificate(options.tls.cert);
    const { hostname, port, tls } = options;
    // Bun's types lack that a TCP listener can share its port.
    const address = { hostname, port, allowHalfOpen: true, reusePort: true };
    this.#listener = Bun.listen<Link>({
      ...address,
      ...(tls ? { tls: { cert: tls.cert, key: tls.key } } : {}),
      socket: {
        open: (socket) => this.#open(socket),
        data: (socket, bytes) => this.#onClientData(socket.data, bytes),
        drain: ({ data }) => (data?.taker ? data.taker.drain?.() : data?.drain("client")),
        end: ({ data }) => (data?.taker ? data.taker.ended() : data && this.#onClientEnd(data)),
        close: ({ data }) => (data?.taker ? data.taker.ended() : data?.close()),
        error: ({ data }) => (data?.taker ? data.taker.failed() : data?.close()),
      },
    });
  }

  get port(): number {
    return this.#listener.port;
  }

  /** Returns the number of forwarded connections. */
  get size(): number {
    return this.#links.size;
  }

  /**
   * Called when this node starts to listen itself and gets new clients. Clients on their way here or waiting for a node are forwarded to
   * it; connections forwarded to the previous node are cut off a moment later.
   */
  handOffClients(): void {
    this.#hasHandedOff = true;
    const end = (): void => void this.#listener.stop();
    if (directToSecondListener(this.#descriptor)) this.#options.clock.after(LISTENER_GRACE_MS, end);
    else end();
  }

  /** Starts next to this node's own server, which is handing over: new clients are forwarded to the next node. */
  acceptClients(): void {
    directToSecondListener(this.#descriptor);
    this.#isDraining = true;
  }

  /** Forwards until only streams are open and no new client has come for some time; until `until` at the latest. */
  async drain(until: number): Promise<void> {
    const { clock } = this.#options;
    this.#isDraining = true;
    const isQuiet = (): boolean => this.#isDone && clock.monotonic() - this.#last_client_at > QUIET_PERIOD_MS;
    while (clock.monotonic() < until && !isQuiet()) await pause(clock, CHECK_INTERVAL_MS);
    if (stopAccepting(this.#descriptor)) await pause(clock, CHECK_INTERVAL_MS);
    this.#listener.stop();
    for (const link of this.#links)
      if (!link.server.socket) this.#refuse(link, "503 Service Unavailable", NODE_STOPPING);
    while (clock.monotonic() < until && !this.#isDone) await pause(clock, CHECK_INTERVAL_MS);
    this.end();
  }

  end(): void {
    this.#listener.stop(true);
    this.#goneNodes.end();
    for (const link of this.#links) link.close();
  }

  /** Bun's types lack this property. */
  get #descriptor(): number {
    return (this.#listener as unknown as { readonly fd: number }).fd;
  }

  get #isDone(): boolean {
    return [...this.#links].every(({ isStream }) => isStream);
  }

  #open(socket: Socket<Link>): void {
    const { clock, max_connections } = this.#options;
    const link = new Link(clock, () => {
      this.#links.delete(link);
      this.#excessLinks.delete(link);
    });
    socket.data = link;
    link.client.socket = socket;
    this.#links.add(link);
    const isBeyond = this.#links.size > max_connections;
    if (isBeyond && this.#excessLinks.size >= MAX_PROBES) {
      this.#refuse(link, "503 Service Unavailable", TOO_MANY_REQUESTS);
      return;
    }
    if (isBeyond) this.#excessLinks.add(link);
    link.timer = clock.after(isBeyond ? PROBE_HEAD_TIMEOUT_MS : HEAD_TIMEOUT_MS, () => link.close());
  }

  #onClientData(link: Link, bytes: Buffer): void {
    if (link.taker) {
      link.taker.data(bytes);
      return;
    }
    if (link.isAnswered) return;
    link.onClientData(bytes);
    if (!link.isPassing) this.#begin(link, link.kept ?? bytes);
  }

  /** Answers requests about this node and forwards all others. */
  #begin(link: Link, early: Buffer): void {
    const head = readHead(early);
    if (head === undefined) return;
    link.timer?.cancel();
    if (head === "wrong" || early.length > MAX_BUFFERED_BYTES + MAX_HEAD_BYTES) {
      this.#refuse(link, "400 Bad Request", "This request cannot be forwarded.");
      return;
    }
    const { token, shards, onNode, isOurs } = this.#options;
    // A spare forwards health checks for other hosts like any request: an app may serve the path, and the active node rejects the rest.
    const asksHealth =
      head.method === "GET" && head.path === "/healthz" && (shards !== undefined || !head.hasHost || isOurs(head.host));
    const asksReady = head.method === "GET" && head.path === "/readyz";
    if (this.#excessLinks.has(link) && !asksHealth && !asksReady) {
      this.#refuse(link, "503 Service Unavailable", TOO_MANY_REQUESTS);
      return;
    }
    const named = parseForwardedAddress(head.passedOnBy ?? null, this.#digest);
    const from = onNode && head.path === LINK_PATH ? parseLinkSender(head.passedOnBy, this.#digest) : undefined;
    if (from !== undefined && onNode) {
      link.handSocketTo((socket) => onNode(socket, from), early.subarray(head.end));
      return;
    }
    if (asksHealth) this.#answerHealth(link, head, early);
    else if (named !== undefined && shards) void this.#forwardIncoming(link, head, named, early);
    // A node assumes that this one is active. It must ask the next node, because a forwarded request is not forwarded again.
    else if (named !== undefined) link.answer(formatDecline(token));
    // A spare that assumes this node is active gets the same answer when it asks for readiness. Everyone else is a client.
    else if (asksReady && isAskedByNode(head.passedOnBy, this.#digest))
      this.#refuse(link, "503 Service Unavailable", "This node is not the active one.");
    else if (asksReady) this.#answerWhetherReady(link, head, early);
    else {
      this.#prepareLink(link, head, link.client.socket?.remoteAddress ?? "", early);
      if (head.waits) link.write("client", CONTINUE_RESPONSE);
      void this.#pass(link, head, early.length === head.end);
    }
  }

  /**
   * Lets this node's own server answer, because it checks the host and knows the request ID; answers itself when the server accepts
   * nothing.
   */
  #answerHealth(link: Link, head: Head, early: Buffer): void {
    const here = this.#options.shards?.here();
    if (!head.hasHost) this.#refuse(link, "400 Bad Request", "A request must have exactly one Host header.");
    else if (here) {
      this.#prepareLink(link, head, link.client.socket?.remoteAddress ?? "", early);
      void this.#forwardLocally(link, here, HEALTHY_RESPONSE);
    } else link.answer(HEALTHY_RESPONSE);
  }

  /** Lets this node's own server answer if it has shards. A spare is as ready as the active node. */
  #answerWhetherReady(link: Link, head: Head, early: Buffer): void {
    const options = this.#options;
    if (!options.shards) {
      void this.#answerReadiness(link, head.host, options.leader());
      return;
    }
    const stopping = toPlainResponse("503 Service Unavailable", { message: NODE_STOPPING, ...options.state() });
    const here = options.shards.here();
    if (here) {
      this.#prepareLink(link, head, link.client.socket?.remoteAddress ?? "", early);
      void this.#forwardLocally(link, here, stopping);
    } else link.answer(stopping);
  }

  /** Forwards to this node's own server only. `otherwise` is the response when the server accepts nothing. */
  async #forwardLocally(link: Link, here: NodeAddress, otherwise: Buffer): Promise<void> {
    const { clock, token } = this.#options;
    const elsewhere = (): undefined => undefined;
    const requested = await forwardToActive(
      { clock, token, certificate: this.#certificate, findNode: () => here, elsewhere },
      link,
    );
    if (requested !== "begun" && requested !== "closed") link.answer(otherwise);
  }

  /**
   * Delays the end of a client's input: a server drops a request whose client closes its side before the response. A half-closed client
   * cannot be distinguished from one that has disconnected, so a client that waits longer, such as a long poll, is treated as disconnected.
   */
  #onClientEnd(link: Link): void {
    if (link.onClientEnd())
      this.#options.clock.after(HALF_CLOSE_TIMEOUT_MS, () => !link.isOver && link.endSide("server"));
  }

  #prepareLink(link: Link, head: Head, address: string, early: Buffer): void {
    this.#last_client_at = this.#options.clock.monotonic();
    link.isPassing = true;
    link.isStream = head.isUpgrade;
    link.isWhole = head.isRead && !head.isUpgrade;
    link.kept = Buffer.concat([head.passedOn(this.#options.token, address), early.subarray(head.end)]);
  }

  /** Handles a request that another node forwarded, or declines it. */
  async #forwardIncoming(link: Link, head: Head, address: string, early: Buffer): Promise<void> {
    this.#prepareLink(link, head, address, early);
    // The forwarding node has already waited for its client.
    link.isWhole = false;
    link.client.socket?.setKeepAlive(true, KEEP_ALIVE_MS);
    const { clock, token, shards } = this.#options;
    let named: number | undefined;
    const elsewhere = (shard: number | undefined): undefined => {
      named = shard;
    };
    const findNode = () => shards?.here();
    const requested = findNode()
      ? await forwardToActive({ clock, token, certificate: this.#certificate, findNode, elsewhere }, link)
      : "elsewhere";
    if (requested === "elsewhere" || requested === "none") link.answer(formatDecline(token, named));
    if (requested === "lost") this.#refuse(link, "503 Service Unavailable", SERVER_REPLACED);
  }

  /** Returns the next node to ask: this node first, then the owner of the named shard. */
  #route(named?: number): { findNode(): WatchedNode | undefined; elsewhere?(shard: number | undefined): boolean } {
    const options = this.#options;
    if (!options.shards)
      return { findNode: () => (this.#hasHandedOff ? parseNodeAddress(options.own()) : this.#leader(options)) };
    const { shards } = options;
    const findOtherNode = (shard: number): WatchedNode | undefined => {
      const address = shards.addressOf(shard);
      const node = parseNodeAddress(address);
      const life = address && shards.lifeAt(address);
      return node && address ? { ...node, isGone: () => shards.lifeAt(address) !== life } : undefined;
    };
    return {
      findNode: () => {
        const here = shards.here();
        // While the shard is unknown, this node is asked; otherwise its owner.
        if (named === undefined) return here ?? findOtherNode(FIRST_SHARD);
        return here && shards.has(named) ? here : findOtherNode(named);
      },
      elsewhere: (shard) => {
        const isNews = shard !== undefined && shard !== named;
        named = shard ?? named;
        return isNews;
      },
    };
  }

  /** Returns the active node; another node replaces it when it becomes active. */
  #leader({ leader }: ActiveNodes): WatchedNode | undefined {
    const address = leader();
    const node = parseNodeAddress(address);
    return node && { ...node, isGone: () => this.#hasHandedOff || ![address, undefined].includes(leader()) };
  }

  /** Forwards to this node itself if it serves reads and can answer; otherwise to the active node. */
  async #pass(link: Link, head: Head, isWhole: boolean): Promise<void> {
    const { clock, reads, token } = this.#options;
    const certificate = this.#certificate;
    const shard = head.isRead && !head.isUpgrade ? undefined : await this.#findShard(head);
    if (head.isRead && isWhole && shard === undefined && reads && link.kept) {
      const findNode = () => (this.#hasHandedOff || this.#isDraining ? undefined : reads());
      const isAnswered = await answerLocally({ clock, findNode, certificate }, link.kept, {
        data: (bytes) => link.write("client", bytes),
        drain: () => link.drain("server"),
        ended: () => link.endSide("client"),
        failed: () => link.close(),
        begun: (socket) => link.begin(socket),
      });
      if (isAnswered) return;
    }
    const route = this.#route(shard ?? (await this.#findShard(head)));
    const goneNodes = this.#goneNodes;
    const requested = await forwardToActive(
      { clock, token, certificate, goneNodes, isRead: head.isRead, ...route },
      link,
    );
    if (requested === "none") this.#refuse(link, "503 Service Unavailable", "No node of the cluster is active.");
    if (requested === "lost") this.#refuse(link, "503 Service Unavailable", SERVER_REPLACED);
  }

  async #findShard(head: Head): Promise<number | undefined> {
    const { shards } = this.#options;
    const request = shards?.shardOf && head.request();
    return request && (await shards?.shardOf?.(request).catch(() => undefined));
  }

  /** Clients of this node are served by the active node, so this one is exactly as ready. */
  async #answerReadiness(link: Link, host: string, active: string | undefined): Promise<void> {
    link.isPassing = true;
    const { clock, state, token } = this.#options;
    if (this.#isDraining) {
      link.answer(toPlainResponse("503 Service Unavailable", { message: NODE_STOPPING, ...state() }));
      return;
    }
    const { isReady, message } = await readinessOfSpare({ clock, token, active, certificate: this.#certificate, host });
    if (link.isOver) return;
    link.answer(toPlainResponse(isReady ? "200 OK" : "503 Service Unavailable", { message, ...state() }));
  }

  #refuse(link: Link, status: Parameters<typeof toPlainResponse>[0], message: string): void {
    this.#excessLinks.delete(link);
    link.answer(toPlainResponse(status, { message }));
  }
}
