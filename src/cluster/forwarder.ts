// What a spare listens with: every connection is passed on to the active node, byte by byte in both directions, whatever is spoken on it
// after the first head (HTTP, event streams, WebSockets, tunnels). A side that does not take what comes stops the other one from being
// read, so nothing is lost and what waits is bounded by the buffers of the two sockets.
import type { X509Certificate } from "node:crypto";
import type { Socket, TCPSocketListener } from "bun";
import type { Clock } from "#base/clock.ts";
import { sha256 } from "#base/ids.ts";
import { FIRST_PART } from "#base/parts.ts";
import { pause } from "#base/retry.ts";
import { giveToSecond, takeNoMore } from "#base/system/same-port.ts";
import type { NodeState } from "#schema/readiness.ts";
import { elsewhereAnswer } from "./answer-head.ts";
import { askActive, type OtherPlace } from "./ask-active.ts";
import { askHere } from "./ask-here.ts";
import { KEEP_ALIVE_MS, type NodeListener, type NodePlace, parsePlace } from "./connect.ts";
import { GoneNodes } from "./gone-nodes.ts";
import { ALIVE, GO_ON, type Head, MAX_HEAD_BYTES, plainAnswer, readHead } from "./head.ts";
import { EARLY_BYTES, Link } from "./link.ts";
import { LINK_PATH, linkFrom } from "./node-head.ts";
import type { WireSocket } from "./node-wire.ts";
import { addressNamedBy, isAskedByNode } from "./passed-on.ts";
import { parseCertificate } from "./peer.ts";
import { readinessOfSpare } from "./readiness.ts";

const REPLACED = "The server was just replaced: send it again.";
const STOPPING = "This node is stopping.";
const TOO_MANY = "The server has too many open requests.";
/** How long a client may take for its first head. */
const HEAD_MS = 10_000;
/** Connections beyond `max_connections` whose heads are heard, since they may be health checks, and how long each may take for it. */
const PROBES = 32;
const PROBE_HEAD_MS = 2_000;
/** For connections that are on their way to a listener that is to be closed. */
const ON_ITS_WAY_MS = 250;
/** How often a node that leaves looks whether anyone still needs it, and how long no new client must have come. */
const LOOK_MS = 50;
const QUIET_MS = 1_000;
/** A client that has closed its side behind its request is waited for no longer. */
const ENDED_MS = 1_000;

export type ForwarderOptions = ListenerOptions & (ActivePlaces | { readonly parts: PartPlaces });

type ListenerOptions = {
  readonly hostname: string;
  readonly port: number;
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  readonly clock: Clock;
  readonly max_connections: number;
  /** Whether the Host header names the server, which answers to no other. */
  isOurs(host: string): boolean;
  /** Tells the active node that a node of its cluster has passed the request on. */
  readonly token: string;
  /** Another node wants a link, and has shown the token: answers who hears what comes on the socket from now on (node-link.ts). */
  onNode?(socket: WireSocket, from: string): NodeListener;
  /** Where this node answers reads itself; undefined while it does not. */
  reads?(): NodePlace | undefined;
  /** What `/readyz` tells of this node alongside whether it is ready. */
  state(): NodeState;
};

/** Where one node is active. */
type ActivePlaces = {
  /** host:port of that node; undefined while none exists, and when it is this one. */
  leader(): string | undefined;
  /** host:port of this node, once it is the active one and listens itself. */
  own(): string;
  readonly parts?: undefined;
};

/** Where several nodes are active. */
export type PartPlaces = {
  /** Where this node's own server listens, which knows what belongs to it; undefined once it takes nothing more. */
  here(): NodePlace | undefined;
  /** Whether this node has the part. */
  has(part: number): boolean;
  /** host:port of the other node that has it; undefined while none exists. */
  placeOf(part: number): string | undefined;
  /** Which life of it the node has there that has a lease; another one once it was followed and has come again. Undefined where none has. */
  lifeAt(place: string): number | undefined;
  /** Of which part a request is, by its head; undefined where any node does it, or it is not known now. Anyone who is asked for it looks for itself. */
  readonly partOf?: ((request: Request) => Promise<number | undefined>) | undefined;
};

export class Forwarder {
  readonly #options: ForwarderOptions;
  readonly #links = new Set<Link>();
  /** Of these, who came beyond `max_connections`. */
  readonly #beyond = new Set<Link>();
  readonly #listener: TCPSocketListener<Link>;
  readonly #certificate: X509Certificate | undefined;
  readonly #digest: string;
  readonly #goneNodes: GoneNodes;
  #isNext = false;
  #isLeaving = false;
  /** When someone came last who was passed on, by the monotonic clock. */
  #came_at = Number.NEGATIVE_INFINITY;

  constructor(options: ForwarderOptions) {
    this.#options = options;
    this.#digest = sha256(options.token);
    this.#goneNodes = new GoneNodes(options.clock);
    this.#certificate = options.tls && parseCertificate(options.tls.cert);
    const { hostname, port, tls } = options;
    // Bun's types do not know that a TCP listener may share its port.
    const address = { hostname, port, allowHalfOpen: true, reusePort: true };
    this.#listener = Bun.listen<Link>({
      ...address,
      ...(tls ? { tls: { cert: tls.cert, key: tls.key } } : {}),
      socket: {
        open: (socket) => this.#open(socket),
        data: (socket, bytes) => this.#fromClient(socket.data, bytes),
        drain: ({ data }) => (data?.taker ? data.taker.drain?.() : data?.drain("client")),
        end: ({ data }) => (data?.taker ? data.taker.ended() : data && this.#hearEnd(data)),
        close: ({ data }) => (data?.taker ? data.taker.ended() : data?.close()),
        error: ({ data }) => (data?.taker ? data.taker.failed() : data?.close()),
      },
    });
  }

  get port(): number {
    return this.#listener.port;
  }

  /** Connections that are passed on now. */
  get size(): number {
    return this.#links.size;
  }

  /**
   * This node listens itself from now on, and gets anyone who comes. Who is on the way here still, or waits for a node, is passed on to it; what
   * was passed on to the node before is cut off a moment later.
   */
  handOver(): void {
    this.#isNext = true;
    const end = (): void => void this.#listener.stop();
    if (giveToSecond(this.#descriptor)) this.#options.clock.after(ON_ITS_WAY_MS, end);
    else end();
  }

  /** Begins alongside the node itself, which hands over: from now on anyone who comes is passed on to the next one. */
  takeOver(): void {
    giveToSecond(this.#descriptor);
    this.#isLeaving = true;
  }

  /** Passes on what comes, until nothing is open but streams, and no new client has come for a while; `until` at the latest. */
  async leave(until: number): Promise<void> {
    const { clock } = this.#options;
    this.#isLeaving = true;
    const isQuiet = (): boolean => this.#isDone && clock.monotonic() - this.#came_at > QUIET_MS;
    while (clock.monotonic() < until && !isQuiet()) await pause(clock, LOOK_MS);
    if (takeNoMore(this.#descriptor)) await pause(clock, LOOK_MS);
    this.#listener.stop();
    for (const link of this.#links) if (!link.server.socket) this.#refuse(link, "503 Service Unavailable", STOPPING);
    while (clock.monotonic() < until && !this.#isDone) await pause(clock, LOOK_MS);
    this.end();
  }

  end(): void {
    this.#listener.stop(true);
    this.#goneNodes.end();
    for (const link of this.#links) link.close();
  }

  /** Bun's types do not know of it. */
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
      this.#beyond.delete(link);
    });
    socket.data = link;
    link.client.socket = socket;
    this.#links.add(link);
    const isBeyond = this.#links.size > max_connections;
    if (isBeyond && this.#beyond.size >= PROBES) {
      this.#refuse(link, "503 Service Unavailable", TOO_MANY);
      return;
    }
    if (isBeyond) this.#beyond.add(link);
    link.timer = clock.after(isBeyond ? PROBE_HEAD_MS : HEAD_MS, () => link.close());
  }

  #fromClient(link: Link, bytes: Buffer): void {
    if (link.taker) {
      link.taker.data(bytes);
      return;
    }
    if (link.isAnswered) return;
    link.hear(bytes);
    if (!link.isPassing) this.#begin(link, link.kept ?? bytes);
  }

  /** Answers what is about this node, and passes on all else. */
  #begin(link: Link, early: Buffer): void {
    const head = readHead(early);
    if (head === undefined) return;
    link.timer?.cancel();
    if (head === "wrong" || early.length > EARLY_BYTES + MAX_HEAD_BYTES) {
      this.#refuse(link, "400 Bad Request", "This is no request that can be passed on.");
      return;
    }
    const { token, parts, onNode, isOurs } = this.#options;
    // Of another host it is passed on by a spare, as all else is: an application may have it, and the active node refuses the rest.
    const asksHealth =
      head.method === "GET" && head.path === "/healthz" && (parts !== undefined || !head.hasHost || isOurs(head.host));
    const asksReady = head.method === "GET" && head.path === "/readyz";
    if (this.#beyond.has(link) && !asksHealth && !asksReady) {
      this.#refuse(link, "503 Service Unavailable", TOO_MANY);
      return;
    }
    const named = addressNamedBy(head.passedOnBy ?? null, this.#digest);
    const from = onNode && head.path === LINK_PATH ? linkFrom(head.passedOnBy, this.#digest) : undefined;
    if (from !== undefined && onNode) {
      link.give((socket) => onNode(socket, from), early.subarray(head.end));
      return;
    }
    if (asksHealth) this.#answerHealth(link, head, early);
    else if (named !== undefined && parts) void this.#passIn(link, head, named, early);
    // A node takes this one for the active one: it asks the next one, and what was passed on is not passed on again.
    else if (named !== undefined) link.answer(elsewhereAnswer(token));
    // A spare that takes this one for the active node says so also when it asks whether that is ready. Anyone else who says it is a client.
    else if (asksReady && isAskedByNode(head.passedOnBy, this.#digest))
      this.#refuse(link, "503 Service Unavailable", "This node is not the active one.");
    else if (asksReady) this.#answerWhetherReady(link, head, early);
    else {
      this.#take(link, head, link.client.socket?.remoteAddress ?? "", early);
      if (head.waits) link.write("client", GO_ON);
      void this.#pass(link, head, early.length === head.end);
    }
  }

  /** As this node's own server does it, which looks at the host and knows the request's id; on its own where that takes nothing. */
  #answerHealth(link: Link, head: Head, early: Buffer): void {
    const here = this.#options.parts?.here();
    if (!head.hasHost) this.#refuse(link, "400 Bad Request", "A request names one host.");
    else if (here) {
      this.#take(link, head, link.client.socket?.remoteAddress ?? "", early);
      void this.#passHere(link, here, ALIVE);
    } else link.answer(ALIVE);
  }

  /** As this node's own server says it, where it has parts. A spare is as ready as the active node. */
  #answerWhetherReady(link: Link, head: Head, early: Buffer): void {
    const options = this.#options;
    if (!options.parts) {
      void this.#answerReadiness(link, head.host, options.leader());
      return;
    }
    const stopping = plainAnswer("503 Service Unavailable", { message: STOPPING, ...options.state() });
    const here = options.parts.here();
    if (here) {
      this.#take(link, head, link.client.socket?.remoteAddress ?? "", early);
      void this.#passHere(link, here, stopping);
    } else link.answer(stopping);
  }

  /** To this node's own server only. `otherwise`: where that takes nothing. */
  async #passHere(link: Link, here: NodePlace, otherwise: Buffer): Promise<void> {
    const { clock, token } = this.#options;
    const elsewhere = (): undefined => undefined;
    const asked = await askActive({ clock, token, certificate: this.#certificate, place: () => here, elsewhere }, link);
    if (asked !== "begun" && asked !== "closed") link.answer(otherwise);
  }

  /**
   * A server drops a request whose client closes its side before it is answered, so the server hears of that later. Nor can a client be distinguished from one
   * that has gone: for anyone who waits longer, such as one that polls, that is what it is taken for.
   */
  #hearEnd(link: Link): void {
    if (link.hearEnd()) this.#options.clock.after(ENDED_MS, () => !link.isOver && link.ended("server"));
  }

  #take(link: Link, head: Head, address: string, early: Buffer): void {
    this.#came_at = this.#options.clock.monotonic();
    link.isPassing = true;
    link.isStream = head.isUpgrade;
    link.isWhole = head.isRead && !head.isUpgrade;
    link.kept = Buffer.concat([head.passedOn(this.#options.token, address), early.subarray(head.end)]);
  }

  /** Another node has passed it on: this one does it, or says that it is not the one. */
  async #passIn(link: Link, head: Head, address: string, early: Buffer): Promise<void> {
    this.#take(link, head, address, early);
    // The node that has passed it on has waited for its client.
    link.isWhole = false;
    link.client.socket?.setKeepAlive(true, KEEP_ALIVE_MS);
    const { clock, token, parts } = this.#options;
    let named: number | undefined;
    const elsewhere = (part: number | undefined): undefined => {
      named = part;
    };
    const place = () => parts?.here();
    const asked = place()
      ? await askActive({ clock, token, certificate: this.#certificate, place, elsewhere }, link)
      : "elsewhere";
    if (asked === "elsewhere" || asked === "none") link.answer(elsewhereAnswer(token, named));
    if (asked === "lost") this.#refuse(link, "503 Service Unavailable", REPLACED);
  }

  /** The place to ask next: this node first, then anyone who has the part that is named. */
  #route(named?: number): { place(): OtherPlace | undefined; elsewhere?(part: number | undefined): boolean } {
    const options = this.#options;
    if (!options.parts) return { place: () => (this.#isNext ? parsePlace(options.own()) : this.#leader(options)) };
    const { parts } = options;
    const other = (part: number): OtherPlace | undefined => {
      const address = parts.placeOf(part);
      const place = parsePlace(address);
      const life = address && parts.lifeAt(address);
      return place && address ? { ...place, isGone: () => parts.lifeAt(address) !== life } : undefined;
    };
    return {
      place: () => {
        const here = parts.here();
        // Who has a part is asked; so is this node while the part is not known.
        if (named === undefined) return here ?? other(FIRST_PART);
        return here && parts.has(named) ? here : other(named);
      },
      elsewhere: (part) => {
        const isNews = part !== undefined && part !== named;
        named = part ?? named;
        return isNews;
      },
    };
  }

  /** The active node, which is followed once another one is that. */
  #leader({ leader }: ActivePlaces): OtherPlace | undefined {
    const address = leader();
    const place = parsePlace(address);
    return place && { ...place, isGone: () => this.#isNext || ![address, undefined].includes(leader()) };
  }

  /** To this node itself, where it answers reads and can say this; else to the active one. */
  async #pass(link: Link, head: Head, isWhole: boolean): Promise<void> {
    const { clock, reads, token } = this.#options;
    const certificate = this.#certificate;
    const part = head.isRead && !head.isUpgrade ? undefined : await this.#partOf(head);
    if (head.isRead && isWhole && part === undefined && reads && link.kept) {
      const place = () => (this.#isNext || this.#isLeaving ? undefined : reads());
      const isAnswered = await askHere({ clock, place, certificate }, link.kept, {
        data: (bytes) => link.write("client", bytes),
        drain: () => link.drain("server"),
        ended: () => link.ended("client"),
        failed: () => link.close(),
        begun: (socket) => link.begin(socket),
      });
      if (isAnswered) return;
    }
    const route = this.#route(part ?? (await this.#partOf(head)));
    const goneNodes = this.#goneNodes;
    const asked = await askActive({ clock, token, certificate, goneNodes, isRead: head.isRead, ...route }, link);
    if (asked === "none") this.#refuse(link, "503 Service Unavailable", "No node of the cluster is active.");
    if (asked === "lost") this.#refuse(link, "503 Service Unavailable", REPLACED);
  }

  async #partOf(head: Head): Promise<number | undefined> {
    const { parts } = this.#options;
    const request = parts?.partOf && head.request();
    return request && (await parts?.partOf?.(request).catch(() => undefined));
  }

  /** Anyone who comes is served by the active node: this one is as ready as that. */
  async #answerReadiness(link: Link, host: string, active: string | undefined): Promise<void> {
    link.isPassing = true;
    const { clock, state, token } = this.#options;
    if (this.#isLeaving) {
      link.answer(plainAnswer("503 Service Unavailable", { message: STOPPING, ...state() }));
      return;
    }
    const { isReady, message } = await readinessOfSpare({ clock, token, active, certificate: this.#certificate, host });
    if (link.isOver) return;
    link.answer(plainAnswer(isReady ? "200 OK" : "503 Service Unavailable", { message, ...state() }));
  }

  #refuse(link: Link, status: Parameters<typeof plainAnswer>[0], message: string): void {
    this.#beyond.delete(link);
    link.answer(plainAnswer(status, { message }));
  }
}
