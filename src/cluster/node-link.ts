// Links of a node to the others (docs/spec/cluster-nodes.md). For each other node, one connection carries this node's calls, opened when
// first needed, and another one carries that node's calls. Calls are plain data, run concurrently, and arrive in the order they are made.
// Each byte stream has its own connection.
import { NotStartedError } from "#base/errors.ts";
import type { OtherNode } from "#base/shards.ts";
import type { Duplex } from "#src/wire/index.ts";
import type { NodeListener } from "./connect.ts";
import { NodeServer, type NodeService } from "./node-answering.ts";
import { NodeClient } from "./node-asking.ts";
import { KIND, peekKind } from "./node-frames.ts";
import { formatLinkResponse } from "./node-head.ts";
import { type LinkOptions, openLink } from "./node-open.ts";
import type { NodeStream } from "./node-stream.ts";
import { answerStream, openStream, type StreamService } from "./node-streams.ts";
import type { WireSocket } from "./node-wire.ts";

export class NodeLinks {
  readonly #options: LinkOptions;
  readonly #services = new Map<string, NodeService>();
  readonly #streamServices = new Map<string, StreamService>();
  /** By address: a node that returns at another address gets another client. */
  readonly #clients = new Map<string, NodeClient>();
  /** All clients, including clients that accept no new calls. */
  readonly #allClients = new Set<NodeClient>();
  readonly #servers = new Set<NodeServer>();
  /** Incoming and outgoing streams. */
  readonly #streams = new Set<Duplex>();
  readonly #drained = Promise.withResolvers<void>();
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
   * Calls another node. Rejects with what its service throws; with `NotStartedError` when it could not be reached, with `CommitError`
   * "unknown" when the connection broke before the response, and with AppError "overloaded" when too many calls are waiting.
   */
  call(node: OtherNode, service: string, args: unknown): Promise<unknown> {
    const existing = this.#clients.get(node.address);
    if (existing) return existing.call(service, args);
    if (this.#isClosed) return Promise.reject(new NotStartedError("The node is stopping."));
    const client: NodeClient = new NodeClient(this.#options, node, {
      left: () => this.#clients.delete(node.address),
      closed: () => this.#allClients.delete(client),
    });
    this.#clients.set(node.address, client);
    this.#allClients.add(client);
    return client.call(service, args);
  }

  /**
   * Opens a byte stream to a service registered with `serveStreams`; the caller must end it. Rejects with what the service throws, with
   * `NotStartedError` when the node could not be reached, and with WireError when the connection broke.
   */
  async open(node: OtherNode, service: string, args: unknown): Promise<Duplex> {
    if (this.#isClosed) throw new NotStartedError("The node is stopping.");
    return this.#trackStream(await openStream(this.#options, node, service, args));
  }

  /** Returns whether the node accepts this one as a node. */
  async reaches({ address }: OtherNode): Promise<boolean> {
    const noop = (): void => {};
    return await openLink(this.#options, address, (socket) => {
      socket.end();
      return { data: noop, ended: noop, failed: noop };
    });
  }

  /** Accepts a link that node `from` asked for on this socket after presenting the nodes' token. Returns the listener for the socket. */
  accept(socket: WireSocket, from: string): NodeListener {
    return new AcceptedConnection(socket, (isStream) =>
      isStream ? this.#acceptStream(socket, from) : this.#acceptCalls(socket, from),
    );
  }

  /** Makes and accepts no new calls. Resolves when other nodes' calls are answered and their connections are closed. Streams continue. */
  async drain(): Promise<void> {
    this.#isClosed = true;
    for (const client of this.#allClients) client.end();
    for (const server of this.#servers) server.stopAccepting();
    this.#checkDrained();
    await this.#drained.promise;
  }

  /** Cuts all links. */
  close(): void {
    this.#isClosed = true;
    for (const client of this.#allClients) client.close();
    for (const server of this.#servers) server.close();
    for (const stream of this.#streams) stream.reset("The node has stopped.");
  }

  #acceptCalls(socket: WireSocket, from: string): NodeListener {
    const { clock } = this.#options;
    const server: NodeServer = new NodeServer({
      clock,
      socket,
      from,
      service: (name) => this.#services.get(name),
      over: () => {
        this.#servers.delete(server);
        if (this.#isClosed) this.#checkDrained();
      },
    });
    this.#servers.add(server);
    if (this.#isClosed) server.stopAccepting();
    return server.listener;
  }

  #acceptStream(socket: WireSocket, from: string): NodeStream {
    return this.#trackStream(
      answerStream(this.#options.clock, socket, (name, args, stream) => {
        const service = this.#streamServices.get(name);
        if (!service || this.#isClosed) throw new NotStartedError("The node does not do this.");
        return service(args, stream, from);
      }),
    );
  }

  #trackStream<S extends Duplex>(stream: S): S {
    this.#streams.add(stream);
    void stream.closed.then(() => this.#streams.delete(stream));
    return stream;
  }

  #checkDrained(): void {
    if (this.#servers.size === 0) this.#drained.resolve();
  }
}

/** A connection opened by another node. Its first frame decides whether it carries calls or a stream. */
class AcceptedConnection implements NodeListener {
  readonly #socket: WireSocket;
  readonly #begin: (isStream: boolean) => NodeListener;
  #received = Buffer.alloc(0);
  #listener: NodeListener | undefined;

  /** `begin` returns the listener for the first frame and all later data. */
  constructor(socket: WireSocket, begin: (isStream: boolean) => NodeListener) {
    this.#socket = socket;
    this.#begin = begin;
    socket.write(formatLinkResponse());
  }

  data(bytes: Buffer): void {
    if (this.#listener) {
      this.#listener.data(bytes);
      return;
    }
    this.#received = Buffer.concat([this.#received, bytes]);
    const kind = peekKind(this.#received);
    if (kind === undefined) return;
    this.#listener = this.#begin(kind === KIND.open);
    this.#listener.data(this.#received);
  }

  drain(): void {
    this.#listener?.drain?.();
  }

  ended(): void {
    if (this.#listener) this.#listener.ended();
    else this.#socket.end();
  }

  failed(): void {
    this.#listener?.failed();
  }
}
