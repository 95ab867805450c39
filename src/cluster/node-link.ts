// The links of a node to the others: one connection for what it asks of each, opened when first needed, and one for what each asks of it
// (docs/cluster-nodes.md). Calls are plain data, several at once, in the order in which they are made.
import { NotBegun } from "#base/errors.ts";
import type { OtherNode } from "#base/parts.ts";
import type { NodeListener } from "./connect.ts";
import { Answering, type NodeService } from "./node-answering.ts";
import { Asking, type LinkOptions } from "./node-asking.ts";
import type { WireSocket } from "./node-wire.ts";

export class NodeLinks {
  readonly #options: LinkOptions;
  readonly #services = new Map<string, NodeService>();
  /** By address: a node that comes back elsewhere is another one. */
  readonly #asking = new Map<string, Asking>();
  /** Also those on which nothing new is asked. */
  readonly #connected = new Set<Asking>();
  readonly #answering = new Set<Answering>();
  readonly #gone = Promise.withResolvers<void>();
  #isClosed = false;

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  /** From now on other nodes may ask for this. */
  serve(name: string, service: NodeService): void {
    this.#services.set(name, service);
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

  /** A node named `from` has asked for a link on this socket, and has shown the nodes' token. Answers who is to hear what comes on it. */
  accept(socket: WireSocket, from: string): NodeListener {
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
    return answering.listener;
  }

  /** Asks and begins nothing more. Resolves when what others have asked is answered, and they know. */
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
  }

  #look(): void {
    if (this.#answering.size === 0) this.#gone.resolve();
  }
}
