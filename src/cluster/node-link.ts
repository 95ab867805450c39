// The links of a node to the others: one connection for what it asks of each, opened when first needed, and one for what each asks of it
// (docs/spec/cluster-nodes.md). Calls are plain data, several in parallel, in the order in which they are made. Streams of bytes have each one of their own.
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
  /** By address: a node that returns elsewhere is another one. */
  readonly #asking = new Map<string, Asking>();
  /** Also those on which nothing new is asked. */
  readonly #connected = new Set<Asking>();
  readonly #answering = new Set<Answering>();
  /** Of other nodes, and to them. */
  readonly #streams = new Set<Duplex>();
  readonly #gone = Promise.withResolvers<void>();
  #isClosed = false;

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  /** From now on other nodes may ask for this. */
  serve(name: string, service: NodeService): void {
    this.#services.set(name, service);
  }

  /** From now on other nodes may open streams to this. */
  serveStreams(name: string, service: StreamService): void {
    this.#streamServices.set(name, service);
  }

  /**
   * Asks another node. Rejects with what its service throws; with `NotBegun` when it was not reached, with `CommitError` "unknown" when the
   * connection broke before the answer, with AppError "overloaded" when too much waits for it.
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
   * A stream of bytes to what another node offers by `serveStreams`: the caller's to end. Rejects with what the service throws, with `NotBegun`
   * when it was not reached, with WireError when the connection broke.
   */
  async open(node: OtherNode, service: string, args: unknown): Promise<Duplex> {
    if (this.#isClosed) throw new NotBegun("The node is stopping.");
    return this.#kept(await openStream(this.#options, node, service, args));
  }

  /** Whether a node answers there that takes this one for a node. */
  async reaches({ address }: OtherNode): Promise<boolean> {
    const nothing = (): void => {};
    return await openLink(this.#options, address, (socket) => {
      socket.end();
      return { data: nothing, ended: nothing, failed: nothing };
    });
  }

  /** A node named `from` has asked for a link on this socket, and has shown the nodes' token. Answers who is to hear what comes on it. */
  accept(socket: WireSocket, from: string): NodeListener {
    return new Accepted(socket, (isStream) => (isStream ? this.#stream(socket, from) : this.#answer(socket, from)));
  }

  /** Asks and begins nothing more. Resolves when what others have asked is answered, and they know. Streams go on. */
  async leave(): Promise<void> {
    this.#isClosed = true;
    for (const one of this.#connected) one.end();
    for (const one of this.#answering) one.leave();
    this.#look();
    await this.#gone.promise;
  }

  /** Cuts all links off. */
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

/** A connection that another node has opened, until its first frame tells what it is for. */
class Accepted implements NodeListener {
  readonly #socket: WireSocket;
  readonly #begin: (isStream: boolean) => NodeListener;
  #beginning = Buffer.alloc(0);
  #taker: NodeListener | undefined;

  /** `begin` answers who hears what comes from the first frame on. */
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
