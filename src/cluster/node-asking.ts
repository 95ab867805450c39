// The calling side of a link: a connection to one other node, opened by the first call. When the connection breaks, calls that were not
// sent completely fail as not started, and the outcome of all other calls is unknown.
import type { Socket } from "bun";
import { AppError, NotStartedError } from "#base/errors.ts";
import type { OtherNode } from "#base/shards.ts";
import { CommitError } from "#db/engine/store.ts";
import { formatCall } from "./node-calls.ts";
import { parseWireError } from "./node-errors.ts";
import { type Frame, KIND } from "./node-frames.ts";
import { type LinkOptions, openLink } from "./node-open.ts";
import { MAX_BUFFERED_BYTES, NodeWire } from "./node-wire.ts";

/** Maximum concurrent calls on one link. */
export const MAX_CONCURRENT_CALLS = 1024;

type PendingCall = { readonly resolve: (reply: unknown) => void; readonly reject: (error: Error) => void };

export type ClientEvents = {
  /** Called when the link accepts no new calls. */
  left(): void;
  closed(): void;
};

export class NodeClient {
  readonly #options: LinkOptions;
  readonly #node: OtherNode;
  readonly #events: ClientEvents;
  readonly #calls = new Map<number, PendingCall>();
  /** Bodies of calls waiting for the connection. */
  #buffered: Map<number, string> | undefined = new Map();
  #bufferedSize = 0;
  #wire: NodeWire | undefined;
  #lastId = 0;
  #isOver = false;

  constructor(options: LinkOptions, node: OtherNode, events: ClientEvents) {
    this.#options = options;
    this.#node = node;
    this.#events = events;
    void this.#open();
  }

  /** Sends the call before it returns, so that calls arrive in the order they are made. */
  async call(service: string, args: unknown): Promise<unknown> {
    const body = formatCall(service, args);
    if (this.#calls.size >= MAX_CONCURRENT_CALLS || this.#wire?.isFull || this.#bufferedSize > MAX_BUFFERED_BYTES)
      throw new AppError("overloaded", "Too much waits for another node.");
    this.#lastId = (this.#lastId + 1) % 2 ** 32;
    const id = this.#lastId;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#calls.set(id, { resolve, reject });
    if (this.#buffered) {
      this.#buffered.set(id, body);
      this.#bufferedSize += body.length;
    } else this.#wire?.send(KIND.call, id, body);
    return promise;
  }

  /** Accepts no new calls, and closes once all are answered. */
  end(): void {
    this.#stopAccepting();
    if (this.#calls.size === 0) this.close();
  }

  close(): void {
    if (this.#wire) this.#wire.close();
    else this.#fail(new Set(this.#calls.keys()));
  }

  async #open(): Promise<void> {
    const isOpen = await openLink(this.#options, this.#node.address, (socket) => this.#begin(socket));
    if (!isOpen) this.#fail(new Set(this.#calls.keys()));
  }

  #begin(socket: Socket): NodeWire {
    const { clock } = this.#options;
    const events = {
      answers: false,
      frame: (frame: Frame) => this.#onFrame(frame),
      over: (unsent: ReadonlySet<number>) => this.#fail(unsent),
    };
    const wire = new NodeWire(clock, socket, events);
    this.#wire = wire;
    const buffered = this.#buffered ?? new Map();
    this.#buffered = undefined;
    this.#bufferedSize = 0;
    for (const [id, body] of buffered) wire.send(KIND.call, id, body);
    // The client has ended, and no caller waits for a reply.
    if (this.#isOver && this.#calls.size === 0) wire.close();
    return wire;
  }

  #onFrame({ kind, id, body }: Frame): void {
    if (kind === KIND.leaving) {
      this.end();
      return;
    }
    const call = this.#calls.get(id);
    if (!call) return;
    this.#calls.delete(id);
    const text = body.toString();
    if (kind === KIND.answer) call.resolve(text === "" ? undefined : JSON.parse(text));
    else call.reject(parseWireError(text, this.#node.id));
    if (this.#isOver && this.#calls.size === 0) this.close();
  }

  /** Accepts no new calls. */
  #stopAccepting(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#events.left();
  }

  #fail(unsent: ReadonlySet<number>): void {
    this.#stopAccepting();
    this.#events.closed();
    const { id: name } = this.#node;
    for (const [id, { reject }] of this.#calls) {
      this.#calls.delete(id);
      if (unsent.has(id)) reject(new NotStartedError(`Node ${name} cannot be reached.`));
      else reject(new CommitError("unknown", `the connection to node ${name} broke before it answered`));
    }
  }
}
