// The side of a link that asks: a connection to one other node, opened for the first call. Calls that wait for it, or were not sent whole
// when it broke, were not begun and say so; of those that were sent nobody knows.
import type { X509Certificate } from "node:crypto";
import type { Socket } from "bun";
import type { Clock } from "#base/clock.ts";
import { AppError, NotBegun } from "#base/errors.ts";
import { originNow } from "#base/origin.ts";
import type { OtherNode } from "#base/parts.ts";
import { within } from "#base/retry.ts";
import { requestsOf } from "#base/trace.ts";
import { CommitError } from "#db/engine/store.ts";
import { connectToNode, placeOf } from "./connect.ts";
import { errorFrom } from "./node-errors.ts";
import { type Frame, KIND, MOST_FRAME } from "./node-frames.ts";
import { linkRequest, opensLink } from "./node-head.ts";
import { MOST_WAITING, NodeWire } from "./node-wire.ts";

/** How long a node may take to be reached. */
const OPEN_MS = 3_000;
/** Calls under way on one link. */
export const MOST_CALLS = 1024;

export type LinkOptions = {
  readonly clock: Clock;
  /** The name of this node. */
  readonly id: string;
  readonly token: string;
  /** Of this node, where nodes speak TLS. */
  readonly certificate: X509Certificate | undefined;
};

/** A call as it is on the wire: for whom it is done goes along. */
export type CallBody = {
  readonly service: string;
  readonly args?: unknown;
  readonly origin?: unknown;
  readonly requests?: readonly string[];
};

type Waiting = { readonly resolve: (reply: unknown) => void; readonly reject: (error: Error) => void };

export type AskingEvents = {
  /** Nothing new is to be asked here. */
  left(): void;
  closed(): void;
};

export class Asking {
  readonly #options: LinkOptions;
  readonly #node: OtherNode;
  readonly #events: AskingEvents;
  readonly #calls = new Map<number, Waiting>();
  /** Bodies of calls that wait for the connection. */
  #early: Map<number, string> | undefined = new Map();
  #earlySize = 0;
  #wire: NodeWire | undefined;
  #last = 0;
  #isOver = false;

  constructor(options: LinkOptions, node: OtherNode, events: AskingEvents) {
    this.#options = options;
    this.#node = node;
    this.#events = events;
    void this.#open();
  }

  /** Sent before this returns, so that calls arrive in the order in which they are made. */
  async call(service: string, args: unknown): Promise<unknown> {
    const origin = originNow()?.();
    const requests = [...requestsOf()];
    const call: CallBody = { service, args, ...(origin && { origin }), ...(requests.length > 0 && { requests }) };
    const body = JSON.stringify(call);
    if (body.length > MOST_FRAME / 3 && Buffer.byteLength(body) > MOST_FRAME)
      throw new AppError("too_large", "This is too much for one message.");
    if (this.#calls.size >= MOST_CALLS || this.#wire?.isFull || this.#earlySize > MOST_WAITING)
      throw new AppError("overloaded", "Too much waits for another node.");
    this.#last = (this.#last + 1) % 2 ** 32;
    const id = this.#last;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#calls.set(id, { resolve, reject });
    if (this.#early) {
      this.#early.set(id, body);
      this.#earlySize += body.length;
    } else this.#wire?.send(KIND.call, id, body);
    return promise;
  }

  /** Asks nothing more, and closes when all is answered. */
  end(): void {
    this.#leave();
    if (this.#calls.size === 0) this.close();
  }

  close(): void {
    if (this.#wire) this.#wire.close();
    else this.#fail(new Set(this.#calls.keys()));
  }

  async #open(): Promise<void> {
    const { clock, token, id, certificate } = this.#options;
    const place = placeOf(this.#node.address);
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
    let beginning = Buffer.alloc(0);
    const socket = place
      ? connectToNode(place, certificate, {
          data: (bytes) => {
            if (this.#wire) return this.#wire.data(bytes);
            beginning = Buffer.concat([beginning, bytes]);
            const rest = opensLink(beginning);
            if (rest === undefined) return;
            if (rest !== "refused") this.#begin(made as Socket, rest);
            answer();
          },
          drain: () => this.#wire?.drain(),
          ended: () => (this.#wire ? this.#wire.ended() : answer()),
          failed: () => (this.#wire ? this.#wire.failed() : answer()),
        })
      : Promise.resolve(undefined);
    let made: Socket | undefined;
    const opened = socket.then(async (one) => {
      made = one;
      if (!one) return;
      // A head is small: a socket that does not take it at once is in trouble.
      const head = linkRequest(this.#node.address, token, id);
      if (one.write(head) === head.length) await answered;
    });
    await within(clock, OPEN_MS, opened);
    if (this.#wire) return;
    this.#fail(new Set(this.#calls.keys()));
    // Also one that comes late.
    void socket.then((one) => one?.terminate());
  }

  #begin(socket: Socket, rest: Buffer): void {
    if (this.#isOver && this.#calls.size === 0) return;
    const { clock } = this.#options;
    const events = {
      answers: false,
      frame: (frame: Frame) => this.#frame(frame),
      over: (unsent: ReadonlySet<number>) => this.#fail(unsent),
    };
    const wire = new NodeWire(clock, socket, events);
    this.#wire = wire;
    const early = this.#early ?? new Map();
    this.#early = undefined;
    this.#earlySize = 0;
    for (const [id, body] of early) wire.send(KIND.call, id, body);
    if (rest.length > 0) wire.data(rest);
  }

  #frame({ kind, id, body }: Frame): void {
    if (kind === KIND.leaving) {
      this.end();
      return;
    }
    const call = this.#calls.get(id);
    if (!call) return;
    this.#calls.delete(id);
    const text = body.toString();
    if (kind === KIND.answer) call.resolve(text === "" ? undefined : JSON.parse(text));
    else call.reject(errorFrom(text, this.#node.id));
    if (this.#isOver && this.#calls.size === 0) this.close();
  }

  /** Nothing is asked here any more. */
  #leave(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#events.left();
  }

  #fail(unsent: ReadonlySet<number>): void {
    this.#leave();
    this.#events.closed();
    const { id: name } = this.#node;
    for (const [id, { reject }] of this.#calls) {
      this.#calls.delete(id);
      if (unsent.has(id)) reject(new NotBegun(`Node ${name} cannot be reached.`));
      else reject(new CommitError("unknown", `the connection to node ${name} broke before it answered`));
    }
  }
}
