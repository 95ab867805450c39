// The listener for clients of a cluster node. A standby node's listener forwards every connection to the active node, byte by byte in both
// directions, regardless of the protocol after the first head (HTTP, event streams, WebSockets, tunnels). Backpressure applies in both
// directions, so nothing is lost, and buffering is bounded by the two sockets.
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
import { isReadinessRequest, parseForwardedAddress } from "./forwarded-header.ts";
import { GoneNodeWatcher } from "./gone-nodes.ts";
import { CONTINUE_RESPONSE, HEALTHY_RESPONSE, type Head, MAX_HEAD_BYTES, readHead, toPlainResponse } from "./head.ts";
import { Link, MAX_BUFFERED_BYTES } from "./link.ts";
import { answerLocally } from "./local-first.ts";
import { LINK_PATH, parseLinkSender } from "./node-head.ts";
import type { WireSocket } from "./node-wire.ts";
import { parseCertificate } from "./peer.ts";
import { findStandbyReadiness } from "./readiness.ts";

const SERVER_REPLACED = "The server was just replaced. Send the request again.";
const NODE_STOPPING = "This node is stopping.";
const TOO_MANY_REQUESTS = "The server has too many open requests.";
/** Timeout for the head of a client's first request. */
const HEAD_TIMEOUT_MS = 10_000;
/** Connections beyond `max_connections` whose heads are read because they may be health checks, and the timeout for that. */
const MAX_PROBES = 32;
const PROBE_HEAD_TIMEOUT_MS = 2_000;
/** Grace period for connections that are on their way to a listener about to close. */
const LISTENER_GRACE_MS = 250;
/** How often a leaving node checks whether it is still needed, and how long it waits for a new client before it closes. */
const CHECK_INTERVAL_MS = 50;
const QUIET_PERIOD_MS = 1_000;
/** How long a client that has closed its side after its request gets for the response. */
const HALF_CLOSE_TIMEOUT_MS = 1_000;

export type ForwarderOptions = ListenerOptions & (ActiveNodes | { readonly shards: ShardNodes });

type ListenerOptions = {
  readonly hostname: string;
  readonly port: number;
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  readonly clock: Clock;
  readonly max_connections: number;
  /** Returns whether the Host header names this server. The server rejects requests for other hosts. */
  isOurs(host: string): boolean;
  /** Proves to the active node that a node of its cluster forwarded the request. */
  readonly token: string;
  /** Called when another node has presented the token and requested a link; returns the listener for the socket (node-link.ts). */
  onNode?(socket: WireSocket, from: string): NodeListener;
  /** Returns the address at which this node serves reads itself; undefined while it serves none. */
  reads?(): NodeAddress | undefined;
  /** Returns the state of this node that `/readyz` reports in addition to its readiness. */
  state(): NodeState;
};

/** Used when one node is active. */
type ActiveNodes = {
  /** Returns host:port of the active node; undefined while none exists, or when this node is active. */
  leader(): string | undefined;
  /** Returns host:port at which this node listens once it is active. */
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
   * Returns the incarnation of the node with a lease at this address; undefined if no node there has a lease. The incarnation changes when
   * the node loses its lease to another one and joins again.
   */
  incarnationAt(address: string): number | undefined;
  /**
   * Returns the shard of a request from its head; undefined if any node can handle the request or the shard is not known. The node that
   * gets the request checks again.
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
  /** Monotonic time at which a client's request was last forwarded. */
  #last_client_at = Number.NEGATIVE_INFINITY;

  constructor(options: ForwarderOptions) {
    this.#options = options;
    this.#digest = sha256(options.token);
    this.#goneNodes = new GoneNodeWatcher(options.clock);
    this.#certificate = options.tls && parseCertificate(options.tls.cert);
    const { hostname, port, tls } = options;
    // Bun's types lack `reusePort`, with which listeners share a port.
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
   * Called when this node's own server starts to listen and gets new clients. Clients that this listener still accepts, and clients that
   * wait for a node, are forwarded to that server. Connections forwarded to the previous node are cut off a moment later.
   */
  handOffClients(): void {
    this.#hasHandedOff = true;
    const end = (): void => void this.#listener.stop();
    if (directToSecondListener(this.#descriptor)) this.#options.clock.after(LISTENER_GRACE_MS, end);
    else end();
  }

  /** Takes new clients from this node's own server while it hands over, and forwards them to the next node. */
  acceptClients(): void {
    directToSecondListener(this.#descriptor);
    this.#isDraining = true;
  }

  /** Forwards until only streams are open and no new client has connected for some time, at the latest until `deadline`. */
  async drain(deadline: number): Promise<void> {
    const { clock } = this.#options;
    this.#isDraining = true;
    const isQuiet = (): boolean => this.#isDone && clock.monotonic() - this.#last_client_at > QUIET_PERIOD_MS;
    while (clock.monotonic() < deadline && !isQuiet()) await pause(clock, CHECK_INTERVAL_MS);
    if (stopAccepting(this.#descriptor)) await pause(clock, CHECK_INTERVAL_MS);
    this.#listener.stop();
    for (const link of this.#links)
      if (!link.server.socket) this.#refuse(link, "503 Service Unavailable", NODE_STOPPING);
    while (clock.monotonic() < deadline && !this.#isDone) await pause(clock, CHECK_INTERVAL_MS);
    this.end();
  }

  end(): void {
    this.#listener.stop(true);
    this.#goneNodes.end();
    for (const link of this.#links) link.close();
  }

  /** The listener's file descriptor, which Bun's types lack. */
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
    const isExcess = this.#links.size > max_connections;
    if (isExcess && this.#excessLinks.size >= MAX_PROBES) {
      this.#refuse(link, "503 Service Unavailable", TOO_MANY_REQUESTS);
      return;
    }
    if (isExcess) this.#excessLinks.add(link);
    link.timer = clock.after(isExcess ? PROBE_HEAD_TIMEOUT_MS : HEAD_TIMEOUT_MS, () => link.close());
  }

  #onClientData(link: Link, bytes: Buffer): void {
    if (link.taker) {
      link.taker.data(bytes);
      return;
    }
    if (link.isAnswered) return;
    link.onClientData(bytes);
    if (!link.isForwarding) this.#begin(link, link.kept ?? bytes);
  }

  /** Answers requests about this node and forwards all others. `early` is what has arrived of the request. */
  #begin(link: Link, early: Buffer): void {
    const head = readHead(early);
    if (head === undefined) return;
    link.timer?.cancel();
    if (head === "wrong" || early.length > MAX_BUFFERED_BYTES + MAX_HEAD_BYTES) {
      this.#refuse(link, "400 Bad Request", "This request cannot be forwarded.");
      return;
    }
    const { token, shards, onNode, isOurs } = this.#options;
    // A standby node forwards health checks for other hosts like any request: an app may serve the path, and the active node rejects the
    // rest.
    const isHealthCheck =
      head.method === "GET" && head.path === "/healthz" && (shards !== undefined || !head.hasHost || isOurs(head.host));
    const isReadinessCheck = head.method === "GET" && head.path === "/readyz";
    if (this.#excessLinks.has(link) && !isHealthCheck && !isReadinessCheck) {
      this.#refuse(link, "503 Service Unavailable", TOO_MANY_REQUESTS);
      return;
    }
    const clientAddress = parseForwardedAddress(head.nodeHeader ?? null, this.#digest);
    const from = onNode && head.path === LINK_PATH ? parseLinkSender(head.nodeHeader, this.#digest) : undefined;
    if (from !== undefined && onNode) {
      link.handSocketTo((socket) => onNode(socket, from), early.subarray(head.end));
      return;
    }
    if (head.isUpgrade && early.length > head.end)
      this.#refuse(link, "400 Bad Request", "Data follows a request for a WebSocket that is not open yet.");
    else if (isHealthCheck) this.#answerHealth(link, head, early);
    else if (clientAddress !== undefined && shards) void this.#forwardIncoming(link, head, clientAddress, early);
    // The sending node wrongly assumes that this one is active. It must ask the next node, because a forwarded request is not forwarded
    // again.
    else if (clientAddress !== undefined) link.answer(formatDecline(token));
    // A standby node that wrongly assumes that this node is active gets the same answer to its readiness request. All other senders are
    // clients.
    else if (isReadinessCheck && isReadinessRequest(head.nodeHeader, this.#digest))
      this.#refuse(link, "503 Service Unavailable", "This node is not the active one.");
    else if (isReadinessCheck) this.#answerReadinessCheck(link, head, early);
    else {
      this.#prepareLink(link, head, link.client.socket?.remoteAddress ?? "", early);
      if (head.expectsContinue) link.write("client", CONTINUE_RESPONSE);
      void this.#forwardClient(link, head, early.length === head.end);
    }
  }

  /**
   * Lets this node's own server answer, because it checks the host and sets the request ID. Answers from here once the server accepts no
   * requests.
   */
  #answerHealth(link: Link, head: Head, early: Buffer): void {
    const here = this.#options.shards?.here();
    if (!head.hasHost) this.#refuse(link, "400 Bad Request", "A request must have exactly one Host header.");
    else if (here) {
      this.#prepareLink(link, head, link.client.socket?.remoteAddress ?? "", early);
      void this.#forwardLocally(link, here, HEALTHY_RESPONSE);
    } else link.answer(HEALTHY_RESPONSE);
  }

  /** Lets this node's own server answer if the node owns shards. A standby node reports the readiness of the active node. */
  #answerReadinessCheck(link: Link, head: Head, early: Buffer): void {
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

  /** Forwards to this node's own server only. `otherwise` is the response if the server does not accept the request. */
  async #forwardLocally(link: Link, here: NodeAddress, otherwise: Buffer): Promise<void> {
    const { clock, token } = this.#options;
    const elsewhere = (): undefined => undefined;
    const result = await forwardToActive(
      { clock, token, certificate: this.#certificate, findNode: () => here, elsewhere },
      link,
    );
    if (result !== "begun" && result !== "closed") link.answer(otherwise);
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
    link.isForwarding = true;
    link.isStream = head.isUpgrade;
    link.awaitsUpgrade = head.isUpgrade;
    link.isCompleteRead = head.isRead && !head.isUpgrade;
    link.kept = Buffer.concat([head.toForwardedHead(this.#options.token, address), early.subarray(head.end)]);
  }

  /** Forwards a request from another node to this node's own server, or declines it. */
  async #forwardIncoming(link: Link, head: Head, address: string, early: Buffer): Promise<void> {
    this.#prepareLink(link, head, address, early);
    // The forwarding node has already delayed the end of its client's input.
    link.isCompleteRead = false;
    link.client.socket?.setKeepAlive(true, KEEP_ALIVE_MS);
    const { clock, token, shards } = this.#options;
    let namedShard: number | undefined;
    const elsewhere = (shard: number | undefined): undefined => {
      namedShard = shard;
    };
    const findNode = () => shards?.here();
    const result = findNode()
      ? await forwardToActive({ clock, token, certificate: this.#certificate, findNode, elsewhere }, link)
      : "elsewhere";
    if (result === "elsewhere" || result === "none") link.answer(formatDecline(token, namedShard));
    if (result === "lost") this.#refuse(link, "503 Service Unavailable", SERVER_REPLACED);
  }

  /** Returns which node to ask: the active one, or the owner of the shard; this node while the shard is not known. */
  #route(initialShard?: number): {
    findNode(): WatchedNode | undefined;
    elsewhere?(shard: number | undefined): boolean;
  } {
    const options = this.#options;
    if (!options.shards)
      return { findNode: () => (this.#hasHandedOff ? parseNodeAddress(options.own()) : this.#leader(options)) };
    const { shards } = options;
    const findOtherNode = (shard: number): WatchedNode | undefined => {
      const address = shards.addressOf(shard);
      const node = parseNodeAddress(address);
      const incarnation = address && shards.incarnationAt(address);
      return node && address ? { ...node, isGone: () => shards.incarnationAt(address) !== incarnation } : undefined;
    };
    let known = initialShard;
    return {
      findNode: () => {
        const here = shards.here();
        if (known === undefined) return here ?? findOtherNode(FIRST_SHARD);
        return here && shards.has(known) ? here : findOtherNode(known);
      },
      elsewhere: (shard) => {
        const isNew = shard !== undefined && shard !== known;
        known = shard ?? known;
        return isNew;
      },
    };
  }

  /** Returns the active node. It counts as gone once another node, or this one, is active. */
  #leader({ leader }: ActiveNodes): WatchedNode | undefined {
    const address = leader();
    const node = parseNodeAddress(address);
    return node && { ...node, isGone: () => this.#hasHandedOff || ![address, undefined].includes(leader()) };
  }

  /**
   * Forwards a client's request: a read to this node's read server if that can answer it, and any other request to the responsible node.
   */
  async #forwardClient(link: Link, head: Head, isComplete: boolean): Promise<void> {
    const { clock, reads, token } = this.#options;
    const certificate = this.#certificate;
    const shard = head.isRead && !head.isUpgrade ? undefined : await this.#findShard(head);
    if (head.isRead && isComplete && shard === undefined && reads && link.kept) {
      const findNode = () => (this.#hasHandedOff || this.#isDraining ? undefined : reads());
      const isAnswered = await answerLocally({ clock, findNode, certificate }, link.kept, {
        data: (bytes) => link.forwardAnswer(bytes),
        drain: () => link.drain("server"),
        ended: () => link.endSide("client"),
        failed: () => link.close(),
        begun: (socket) => link.begin(socket),
      });
      if (isAnswered) return;
    }
    const route = this.#route(shard ?? (await this.#findShard(head)));
    const goneNodes = this.#goneNodes;
    const result = await forwardToActive({ clock, token, certificate, goneNodes, isRead: head.isRead, ...route }, link);
    if (result === "none") this.#refuse(link, "503 Service Unavailable", "No node of the cluster is active.");
    if (result === "lost") this.#refuse(link, "503 Service Unavailable", SERVER_REPLACED);
  }

  async #findShard(head: Head): Promise<number | undefined> {
    const { shards } = this.#options;
    const request = shards?.shardOf && head.request();
    return request && (await shards?.shardOf?.(request).catch(() => undefined));
  }

  /** Reports the readiness of the active node, because it serves this node's clients. */
  async #answerReadiness(link: Link, host: string, active: string | undefined): Promise<void> {
    link.isForwarding = true;
    const { clock, state, token } = this.#options;
    if (this.#isDraining) {
      link.answer(toPlainResponse("503 Service Unavailable", { message: NODE_STOPPING, ...state() }));
      return;
    }
    const { isReady, message } = await findStandbyReadiness({
      clock,
      token,
      active,
      certificate: this.#certificate,
      host,
    });
    if (link.isOver) return;
    link.answer(toPlainResponse(isReady ? "200 OK" : "503 Service Unavailable", { message, ...state() }));
  }

  #refuse(link: Link, status: Parameters<typeof toPlainResponse>[0], message: string): void {
    this.#excessLinks.delete(link);
    link.answer(toPlainResponse(status, { message }));
  }
}
