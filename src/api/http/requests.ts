// The requests being answered right now: counted so that a stop can wait for them, bounded so that a flood is refused, and each
// with a deadline, because nothing else ends a handler that never answers (rules HT-7 to HT-9).
import type { Server } from "bun";
import type { Clock } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import { PartedRequest } from "#base/network/request-part.ts";
import { ResponseMismatches } from "./answers/response-mismatch.ts";
import { hasMoved } from "./errors.ts";
import type { Place } from "./placement/placement.ts";

/** A request that is not answered after this gets 503; streams and long polls exempt themselves. */
const DEADLINE_MS = 60_000;
const CHECK_MS = 1_000;
/** Requests begun in one turn of the event loop; of a crowd that comes at once the rest waits, so that reads and pings are served between. */
const BEGUN_PER_TURN = 32;

/** What only reads writes nothing that would have to be there before the next node begins. */
const READS: ReadonlySet<string> = new Set(["GET", "HEAD"]);

type Waiting = { since: number; late: (reason: AppError) => void };

export class Requests {
  /** Answers that did not fit their schemas. */
  readonly mismatches = new ResponseMismatches();
  readonly #clock: Clock;
  readonly #limit: number;
  readonly #running = new Map<Request, Waiting>();
  /** Without a deadline, and not answered yet. */
  readonly #exempted = new Set<Request>();
  #idle: (() => void)[] = [];
  #stopping = false;
  #begun = 0;
  readonly #named = new WeakMap<Request, string>();
  readonly #waiting: (() => void)[] = [];
  /** Where several nodes are active. */
  readonly #parted = new WeakMap<Request, PartedRequest>();
  #changes: (() => void)[] = [];
  #server: Pick<Server<unknown>, "timeout" | "requestIP"> | undefined;

  /** `limit` requests may run immediately; more are answered 503. */
  constructor(clock: Clock, limit: number) {
    this.#clock = clock;
    this.#limit = limit;
    clock.every(CHECK_MS, () => this.#expire());
  }

  /** Answers the request, or rejects with 503 when there are too many, the server stops, or the handler takes too long. */
  async run(request: Request, answer: () => Promise<Response>): Promise<Response> {
    if (this.#stopping) throw new AppError("overloaded", "The server is stopping.");
    if (this.#running.size >= this.#limit) throw new AppError("overloaded", "The server has too many open requests.");
    const { promise, reject } = Promise.withResolvers<never>();
    this.#running.set(request, { since: this.#clock.monotonic(), late: reject });
    try {
      if (++this.#begun === 1) setImmediate(() => this.#turn());
      if (this.#begun > BEGUN_PER_TURN) await new Promise<void>((resolve) => this.#waiting.push(resolve));
      return await Promise.race([this.#parted.get(request)?.run(answer) ?? answer(), promise]);
    } finally {
      this.#running.delete(request);
      this.#exempted.delete(request);
      if (this.#running.size === 0) for (const resolve of this.#idle.splice(0)) resolve();
    }
  }

  attach(server: Pick<Server<unknown>, "timeout" | "requestIP">): void {
    this.#server = server;
  }

  /** The address at the other end of the connection, or of the node's that has passed it on; undefined when it no longer exists. */
  peerOf(request: Request): string | undefined {
    return this.#named.get(request) ?? this.#server?.requestIP(request)?.address;
  }

  /** Returns the ports at the other end of the connections whose requests are not answered yet. */
  peerPorts(): Set<number> {
    const ports = [...this.#running.keys(), ...this.#exempted].map((request) => this.#server?.requestIP(request)?.port);
    return new Set(ports.filter((port) => port !== undefined));
  }

  /** Another node of the cluster has passed the request on for a client at this address. */
  passedOnFor(request: Request, address: string): void {
    this.#named.set(request, address);
  }

  /** What it writes is of this part, and refused once another node has that; what any node does is of none. */
  belongs(request: Request, place: Place): void {
    if (typeof place === "number") this.#parted.set(request, new PartedRequest(place, () => this.#change()));
  }

  /** Whether it was refused because another node has its part, before it had begun anything: that node is to be asked. */
  isOfAnother(request: Request): boolean {
    return hasMoved(request) && this.#parted.get(request)?.hasBegun === false;
  }

  /** Resolves when no request of these parts that changes something is under way, but for those that wait for someone else themselves. */
  async left(isLeaving: (part: number) => boolean): Promise<void> {
    const isHeld = (request: Request): boolean => {
      const parted = this.#parted.get(request);
      return parted?.mayWrite === true && isLeaving(parted.part) && !READS.has(request.method);
    };
    while ([...this.#running.keys()].some(isHeld)) await new Promise<void>((resolve) => this.#changes.push(resolve));
  }

  /** For long polls and streams: no deadline, no idle timeout, and a stop does not wait for it. */
  exempt(request: Request): void {
    this.#server?.timeout(request, 0);
    if (this.#running.delete(request)) this.#exempted.add(request);
    this.#change();
  }

  /** How many are being answered. */
  get size(): number {
    return this.#running.size;
  }

  /** Refuses new requests and resolves when the last one has been answered. */
  async drain(): Promise<void> {
    this.#stopping = true;
    if (this.#running.size > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #change(): void {
    for (const resolve of this.#changes.splice(0)) resolve();
  }

  /** A new turn: those who wait go on, in the order in which they came. */
  #turn(): void {
    const next = this.#waiting.splice(0, BEGUN_PER_TURN);
    this.#begun = next.length + this.#waiting.length;
    if (this.#begun > 0) setImmediate(() => this.#turn());
    for (const goOn of next) goOn();
  }

  #expire(): void {
    const oldest = this.#clock.monotonic() - DEADLINE_MS;
    for (const { since, late } of this.#running.values()) {
      if (since > oldest) break;
      late(new AppError("overloaded", "The request took too long and was canceled."));
    }
  }
}
