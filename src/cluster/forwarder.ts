// What a spare listens with: every connection is passed on to the active node, byte by byte in both directions, whatever is spoken on it
// after the first head (HTTP, event streams, WebSockets, tunnels). A side that does not take what comes stops the other one from being
// read, so nothing is lost and what waits is bounded by the buffers of the two sockets.
import type { X509Certificate } from "node:crypto";
import type { Socket, TCPSocketListener } from "bun";
import type { Clock, Timer } from "#base/clock.ts";
import { pause, within } from "#base/retry.ts";
import type { NodeState } from "#schema/readiness.ts";
import { askHere } from "./ask-here.ts";
import { connectToNode, type NodeListener, type NodePlace, placeOf } from "./connect.ts";
import { MOST_HEAD, plainAnswer, readHead } from "./head.ts";
import { certificateOf } from "./peer.ts";
import { type Readiness, readinessOfSpare } from "./readiness.ts";

/** How long a connection waits for a node to be active, and how often it looks. */
const WAIT_MS = 15_000;
const LOOK_MS = 50;
/** How long a node may take to be connected to; a machine that is cut off answers nothing at all. */
const CONNECT_MS = 2_000;
/** How long a client may take for its first head. */
const HEAD_MS = 10_000;
/** How long a client may take to hear the end. */
const END_MS = 5_000;
/** Bytes that a client may send before it is connected. */
const EARLY_BYTES = 1024 * 1024;

export type ForwarderOptions = {
  readonly hostname: string;
  readonly port: number;
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  readonly clock: Clock;
  readonly max_connections: number;
  /** Tells the active node that a node of its cluster has passed the request on. */
  readonly token: string;
  /** host:port of the active node; undefined while there is none, and when it is this one. */
  leader(): string | undefined;
  /** host:port of this node, once it is the active one and listens itself. */
  own(): string;
  /** Where this node answers reads itself; undefined while it does not. */
  reads?(): NodePlace | undefined;
  /** What `/readyz` tells of this node beside whether it is ready. */
  state(): NodeState;
};

type Side = {
  socket: Pick<Socket, "write" | "pause" | "resume" | "shutdown" | "end" | "remoteAddress"> | undefined;
  /** What it has not taken yet. */
  waiting: Buffer[];
  /** The other side has ended: so does this one, once it has taken all. */
  ending: boolean;
};

class Link {
  readonly client: Side = { socket: undefined, waiting: [], ending: false };
  readonly server: Side = { socket: undefined, waiting: [], ending: false };
  early: Buffer = Buffer.alloc(0);
  timer: Timer | undefined;
  isPassing = false;
  /** What the client still says is read and dropped: closing on it would cut off the answer. */
  isAnswered = false;
}

export class Forwarder {
  readonly #options: ForwarderOptions;
  readonly #links = new Set<Link>();
  readonly #listener: TCPSocketListener<Link>;
  readonly #certificate: X509Certificate | undefined;
  #isNext = false;

  constructor(options: ForwarderOptions) {
    this.#options = options;
    this.#certificate = options.tls && certificateOf(options.tls.cert);
    const { hostname, port, tls } = options;
    // Bun's types do not know that a TCP listener may share its port.
    const address = { hostname, port, allowHalfOpen: true, reusePort: true };
    this.#listener = Bun.listen<Link>({
      ...address,
      ...(tls ? { tls: { cert: tls.cert, key: tls.key } } : {}),
      socket: {
        open: (socket) => this.#open(socket),
        data: (socket, bytes) => this.#fromClient(socket, bytes),
        drain: (socket) => this.#drain(socket.data, "client"),
        end: ({ data }) => this.#ended(data, "server"),
        close: ({ data }) => data && this.#close(data),
        error: ({ data }) => data && this.#close(data),
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

  /** Listens no longer, and ends what was passed on to the node before; who still waits for a node is passed on to this one. */
  handOver(): void {
    this.#listener.stop();
    this.#isNext = true;
    for (const link of this.#links) if (link.server.socket) this.#close(link);
  }

  end(): void {
    this.#listener.stop(true);
    for (const link of this.#links) this.#close(link);
  }

  #open(socket: Socket<Link>): void {
    const link = new Link();
    socket.data = link;
    link.client.socket = socket;
    this.#links.add(link);
    if (this.#links.size > this.#options.max_connections) {
      this.#refuse(link, "503 Service Unavailable", "The server has too many open connections.");
    } else link.timer = this.#options.clock.after(HEAD_MS, () => this.#close(link));
  }

  #fromClient(socket: Socket<Link>, bytes: Buffer): void {
    const link = socket.data;
    if (link.isAnswered) return;
    if (link.server.socket) {
      this.#write(link, "server", bytes);
      return;
    }
    link.early = Buffer.concat([link.early, bytes]);
    if (link.early.length > EARLY_BYTES) socket.pause();
    if (!link.isPassing) this.#begin(link);
  }

  /** Answers what is about this node, and passes on all else. */
  #begin(link: Link): void {
    const head = readHead(link.early);
    if (head === undefined) return;
    link.timer?.cancel();
    if (head === "wrong" || link.early.length > EARLY_BYTES + MOST_HEAD) {
      this.#refuse(link, "400 Bad Request", "This is no request that can be passed on.");
      return;
    }
    if (head.method === "GET" && head.path === "/healthz") this.#answer(link, "200 OK", { message: "OK" });
    // One that other nodes pass on to says so, also when it is asked whether it is ready.
    else if (head.isPassedOn) this.#refuse(link, "503 Service Unavailable", "This node is not the active one.");
    else if (head.method === "GET" && head.path === "/readyz") void this.#answerReadiness(link, head.host);
    else {
      link.isPassing = true;
      const { token } = this.#options;
      const address = link.client.socket?.remoteAddress ?? "";
      const isRead = head.isRead && link.early.length === head.end;
      link.early = Buffer.concat([head.passedOn(token, address), link.early.subarray(head.end)]);
      void this.#pass(link, isRead);
    }
  }

  /** To this node itself, where it answers reads and can say this; else to the active one. */
  async #pass(link: Link, isRead: boolean): Promise<void> {
    const { clock, reads } = this.#options;
    if (isRead && reads) {
      const here = { clock, place: () => (this.#isNext ? undefined : reads()), certificate: this.#certificate };
      const isAnswered = await askHere(here, link.early, {
        ...this.#toClient(link),
        begun: (socket) => this.#connected(link, socket, Buffer.alloc(0)),
      });
      if (isAnswered) return;
    }
    await this.#connect(link);
  }

  /** While one node hands over to the next, whoever comes waits. */
  async #connect(link: Link): Promise<void> {
    const { clock, leader, own } = this.#options;
    const until = clock.monotonic() + WAIT_MS;
    while (this.#links.has(link)) {
      const place = placeOf(this.#isNext ? own() : leader());
      const made = place && (await this.#reachInTime(link, place));
      if (made) {
        this.#connected(link, made, link.early);
        return;
      }
      if (clock.monotonic() > until) {
        this.#refuse(link, "503 Service Unavailable", "No node of the cluster is active.");
        return;
      }
      await pause(clock, LOOK_MS);
    }
  }

  /** A connection that comes too late is ended: the node is tried again, or another is active by then. */
  async #reachInTime(link: Link, place: NodePlace): Promise<Socket | undefined> {
    let isLate = false;
    const inTime =
      <Given extends unknown[]>(run: (...given: Given) => void) =>
      (...given: Given): void => {
        if (!isLate) run(...given);
      };
    const client = this.#toClient(link);
    const reached = connectToNode(place, this.#certificate, {
      ...client,
      ended: inTime(client.ended),
      failed: inTime(client.failed),
    });
    if (await within(this.#options.clock, CONNECT_MS, reached)) return reached;
    isLate = true;
    void reached.then((late) => late?.end());
    return undefined;
  }

  /** What a node says that the client hears. */
  #toClient(link: Link): Required<NodeListener> {
    return {
      data: (bytes) => this.#write(link, "client", bytes),
      drain: () => this.#drain(link, "server"),
      ended: () => this.#ended(link, "client"),
      failed: () => this.#close(link),
    };
  }

  /** `early`: what it has not heard yet of what the client has said. */
  #connected(link: Link, socket: Socket, early: Buffer): void {
    if (!this.#links.has(link)) {
      socket.end();
      return;
    }
    link.server.socket = socket;
    link.early = Buffer.alloc(0);
    link.client.socket?.resume();
    this.#write(link, "server", early);
    if (link.server.ending) this.#ended(link, "server");
  }

  /** What the socket does not take now waits, and the other side is not read until it has gone. */
  #write(link: Link, to: "client" | "server", bytes: Buffer): void {
    const side = link[to];
    if (side.waiting.length > 0) side.waiting.push(Buffer.from(bytes));
    else {
      const taken = Math.max(0, side.socket?.write(bytes) ?? 0);
      if (taken < bytes.length) side.waiting.push(Buffer.from(bytes.subarray(taken)));
    }
    if (side.waiting.length > 0) link[to === "client" ? "server" : "client"].socket?.pause();
  }

  #drain(link: Link | undefined, which: "client" | "server"): void {
    if (!link) return;
    const side = link[which];
    for (let next = side.waiting[0]; next; next = side.waiting[0]) {
      const taken = Math.max(0, side.socket?.write(next) ?? 0);
      if (taken < next.length) {
        side.waiting[0] = next.subarray(taken);
        return;
      }
      side.waiting.shift();
    }
    if (side.ending) side.socket?.shutdown();
    else link[which === "client" ? "server" : "client"].socket?.resume();
  }

  /** One side has said all: the other hears of it behind what still waits. */
  #ended(link: Link | undefined, tell: "client" | "server"): void {
    if (!link) return;
    const side = link[tell];
    side.ending = true;
    if (side.socket && side.waiting.length === 0) side.socket.shutdown();
    if (tell === "client" || link.isAnswered) this.#closeSoon(link);
  }

  /** The client closes when it has heard the end; one that does not is closed. What it has not read yet is given the time. */
  #closeSoon(link: Link): void {
    if (link.isAnswered && link.client.waiting.length === 0 && link.server.ending) this.#close(link);
    link.timer?.cancel();
    const look = (): void => {
      if (link.client.waiting.length === 0) this.#close(link);
      else link.timer = this.#options.clock.after(END_MS, look);
    };
    link.timer = this.#options.clock.after(END_MS, look);
  }

  /** Whoever comes is served by the active node: this one is as ready as that. */
  async #answerReadiness(link: Link, host: string): Promise<void> {
    link.isPassing = true;
    const { clock, leader, state } = this.#options;
    const { isReady, message }: Readiness = await readinessOfSpare({
      clock,
      active: leader(),
      certificate: this.#certificate,
      host,
    });
    if (!this.#links.has(link)) return;
    this.#answer(link, isReady ? "200 OK" : "503 Service Unavailable", { message, ...state() });
  }

  #refuse(link: Link, status: Parameters<typeof plainAnswer>[0], message: string): void {
    this.#answer(link, status, { message });
  }

  #answer(link: Link, ...[status, said]: Parameters<typeof plainAnswer>): void {
    link.isPassing = true;
    link.isAnswered = true;
    link.early = Buffer.alloc(0);
    link.client.socket?.resume();
    this.#write(link, "client", plainAnswer(status, said));
    this.#ended(link, "client");
  }

  #close(link: Link): void {
    if (!this.#links.delete(link)) return;
    link.timer?.cancel();
    link.client.socket?.end();
    link.server.socket?.end();
  }
}
