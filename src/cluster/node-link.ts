// Links of a node to the others: one connection for its own calls to each, opened when first needed, and one for each one's calls to it
// (docs/spec/cluster-nodes.md). Calls are plain data, run concurrently, and arrive in the order they are made. Each byte stream has its own
// connection.
import { NotBegun } from "#base/errors.ts";
import type { OtherNode } from "#base/parts.ts";
import type { Duplex } from "#src/wire/index.ts";
import type { NodeListener } from "./connect.ts";
import { Answering, type NodeService } from "./node-answering.ts";
import { Asking } from "./node-asking.ts";
import { KIND, kindIn } from "./node-frames.ts";
import { linkOpened } from "./node-head.ts";
import { type LinkOptions, openLink } from "./node-open.ts";
import type { NodeStream } from "./node-stream.ts";
import { answerStream, openStream, type StreamService } from "./node-streams.ts";
import type { WireSocket } from "./node-wire.ts";

export class NodeLinks {
  readonly #options: LinkOptions;
  readonly #services = new Map<string, NodeService>();
  readonly #streamServices = new Map<string, StreamService>();
  /** By address: a node that returns elsewhere is a different one. */
  readonly #asking = new Map<string, Asking>();
  /** Includes links that accept no new calls. */
  readonly #connected = new Set<Asking>();
  readonly #answering = new Set<Answering>();
  /** Incoming and outgoing streams. */
  readonly #streams = new Set<Duplex>();
  readonly #gone = Promise.withResolvers<void>();
  #isClosed = false;

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  /** Registers a service for other nodes. */
  serve(name: string, service: NodeService): void {
    this.#services.set(name, service);
  }

  /** Registers a stream service for other nodes. */
  serveStreams(name: string, service: StreamService): void {
    this.#streamServices.set(name, service);
  }

  /**
   * Calls another node. Rejects with what its service throws; with `NotBegun` when it could not be reached, with `CommitError` "unknown"
   * when the connection broke before the response, and with AppError "overloaded" when too many calls are waiting.
   */
  call(node: OtherNode, service: string, args: unknown): Promise<unknown> {
    const known = this.#asking.get(node.address);
    if (known) return known.call(service, args);
    if (this.#isClosed) return Promise.reject(new NotBegun("The node is stopping."));
    const asking: Asking = new Asking(this.#options, node, {
      left: () => this.#asking.delete(node.address),
      closed: () => this.#connected.delete(asking),
    });
    this.#asking.set(node.address, asking);
    this.#connected.add(asking);
    return asking.call(service, args);
  }

  /**
   * Opens a byte stream to a service registered with `serveStreams`; the caller must end it. Rejects with what the service throws, with
   * `NotBegun` when the node could not be reached, and with WireError when the connection broke.
   */
  async open(node: OtherNode, service: string, args: unknown): Promise<Duplex> {
    if (this.#isClosed) throw new NotBegun("The node is stopping.");
    return this.#kept(await openStream(this.#options, node, service, args));
  }

  /** Returns whether a node at this address accepts this one as a node. */
  async reaches({ address }: OtherNode): Promise<boolean> {
    const nothing = (): void => {};
    return await openLink(this.#options, address, (socket) => {
      socket.end();
      return { data: nothing, ended: nothing, failed: nothing };
    });
  }

  /** Accepts a link that node `from` asked for on this socket after presenting the nodes' token. Returns the listener for the socket. */
  accept(socket: WireSocket, from: string): NodeListener {
    return new Accepted(socket, (isStream) => (isStream ? this.#stream(socket, from) : this.#answer(socket, from)));
  }

  /** Makes and starts no new calls. Resolves when other nodes' calls are answered and they have been notified. Streams continue. */
  async leave(): Promise<void> {
    this.#isClosed = true;
    for (const one of this.#connected) one.end();
    for (const one of this.#answering) one.leave();
    this.#look();
    await this.#gone.promise;
  }

  /** Cuts all links. */
  close(): void {
    this.#isClosed = true;
    for (const one of this.#connected) one.close();
    for (const one of this.#answering) one.close();
    for (const one of this.#streams) one.reset("The node has stopped.");
  }

  #answer(socket: WireSocket, from: string): NodeListener {
    const { clock } = this.#options;
    const answering: Answering = new Answering({
      clock,
      socket,
      from,
      service: (name) => this.#services.get(name),
      over: () => {
        this.#answering.delete(answering);
        if (this.#isClosed) this.#look();
      },
    });
    this.#answering.add(answering);
    if (this.#isClosed) answering.leave();
    return answering.listener;
  }

  #stream(socket: WireSocket, from: string): NodeStream {
    return this.#kept(
      answerStream(this.#options.clock, socket, (name, args, stream) => {
        const service = this.#streamServices.get(name);
        if (!service || this.#isClosed) throw new NotBegun("The node does not do this.");
        return service(args, stream, from);
      }),
    );
  }

  #kept<S extends Duplex>(stream: S): S {
    this.#streams.add(stream);
    void stream.closed.then(() => this.#streams.delete(stream));
    return stream;
  }

  #look(): void {
    if (this.#answering.size === 0) this.#gone.resolve();
  }
}

/** A connection opened by another node, until its first frame tells its purpose. */
class Accepted implements NodeListener {
  readonly #socket: WireSocket;
  readonly #begin: (isStream: boolean) => NodeListener;
  #beginning = Buffer.alloc(0);
  #taker: NodeListener | undefined;

  /** `begin` returns the listener for everything from the first frame on. */
  constructor(socket: WireSocket, begin: (isStream: boolean) => NodeListener) {
    this.#socket = socket;
    this.#begin = begin;
    socket.write(linkOpened());
  }

  data(bytes: Buffer): void {
    if (this.#taker) {
      this.#taker.data(bytes);
      return;
    }
    this.#beginning = Buffer.concat([this.#beginning, bytes]);
    const kind = kindIn(this.#beginning);
    if (kind === undefined) return;
    this.#taker = this.#begin(kind === KIND.open);
    this.#taker.data(this.#beginning);
  }

  drain(): void {
    this.#taker?.drain?.();
  }

  ended(): void {
    if (this.#taker) this.#taker.ended();
    else this.#socket.end();
  }

  failed(): void {
    this.#taker?.failed();
  }
}
