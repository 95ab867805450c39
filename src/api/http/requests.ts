// Tracks the requests in progress: a stop waits for them, their number is limited, and each has a deadline, because nothing else would end
// a handler that never answers (rules HT-7 to HT-9).
import type { Server } from "bun";
import type { Clock } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import { TrackedRequest } from "#base/network/current-request.ts";
import type { IsLeaving } from "#db/own-rows.ts";
import { PageSlots } from "./answers/page-slots.ts";
import { ResponseMismatches } from "./answers/response-mismatch.ts";
import { hasMoved } from "./errors.ts";
import type { Destination } from "./placement/placement.ts";

/** A request that takes longer gets 503; streams and long polls exempt themselves. */
const REQUEST_TIMEOUT_MS = 60_000;
const CHECK_INTERVAL_MS = 1_000;
/** The runtime checks its timeouts every few seconds. */
const CUT_TIMEOUT_SECONDS = 1;
/** Requests started per turn of the event loop. The rest of a burst waits, so that reads and pings are served in between. */
const MAX_STARTED_PER_TURN = 32;

/** Methods without writes. The next node does not have to wait for such requests. */
const READ_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD"]);

type OpenRequest = { startedAt: number; expire: (reason: AppError) => void };

export class Requests {
  /** Responses that did not match their schemas. */
  readonly mismatches = new ResponseMismatches();
  readonly pages: PageSlots;
  readonly #clock: Clock;
  readonly #maxRequests: number;
  readonly #running = new Map<Request, OpenRequest>();
  /** Requests without a deadline that are not answered yet. */
  readonly #exempted = new Set<Request>();
  #onIdle: (() => void)[] = [];
  #isStopping = false;
  #startedThisTurn = 0;
  readonly #peers = new WeakMap<Request, string>();
  readonly #waitingStarts: (() => void)[] = [];
  /** Used only when several nodes are active. */
  readonly #tracked = new WeakMap<Request, TrackedRequest>();
  #onChange: (() => void)[] = [];
  #server: Pick<Server<unknown>, "timeout" | "requestIP"> | undefined;

  /** At most `limit` requests run concurrently; more get 503. */
  constructor(clock: Clock, limit: number) {
    this.#clock = clock;
    this.#maxRequests = limit;
    this.pages = new PageSlots(clock);
    clock.every(CHECK_INTERVAL_MS, () => this.#expire());
  }

  /** Handles the request. Rejects with 503 when there are too many, the server is stopping, or the handler takes too long. */
  async run(request: Request, answer: () => Promise<Response>): Promise<Response> {
    if (this.#isStopping) throw new AppError("overloaded", "The server is stopping.");
    if (this.#running.size >= this.#maxRequests)
      throw new AppError("overloaded", "The server has too many open requests.");
    const { promise: expired, reject: expire } = Promise.withResolvers<never>();
    this.#running.set(request, { startedAt: this.#clock.monotonic(), expire });
    try {
      return await Promise.race([this.#start(request, answer), expired]);
    } finally {
      this.#running.delete(request);
      this.#exempted.delete(request);
      if (this.#running.size === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
    }
  }

  /** Waits for a turn of the event loop that has room, then calls `answer`. */
  async #start(request: Request, answer: () => Promise<Response>): Promise<Response> {
    if (++this.#startedThisTurn === 1) setImmediate(() => this.#startTurn());
    if (this.#startedThisTurn > MAX_STARTED_PER_TURN) {
      await new Promise<void>((resolve) => this.#waitingStarts.push(resolve));
      if (!this.#running.has(request)) throw tookTooLong();
    }
    return this.#tracked.get(request)?.run(answer) ?? answer();
  }

  attach(server: Pick<Server<unknown>, "timeout" | "requestIP">): void {
    this.#server = server;
  }

  /**
   * Returns the client address of the connection, or the one given by the node that forwarded the request; undefined once the connection
   * has closed.
   */
  getPeer(request: Request): string | undefined {
    return this.#peers.get(request) ?? this.#server?.requestIP(request)?.address;
  }

  /** Returns the remote ports of connections with unanswered requests. */
  peerPorts(): Set<number> {
    const ports = [...this.#running.keys(), ...this.#exempted].map((request) => this.#server?.requestIP(request)?.port);
    return new Set(ports.filter((port) => port !== undefined));
  }

  /** Records the client address of a request that another node forwarded. */
  setPeer(request: Request, address: string): void {
    this.#peers.set(request, address);
  }

  /** Sets which rows the request may write; its writes are rejected once another node owns them. */
  assign(request: Request, destination: Destination): void {
    if (typeof destination === "number")
      this.#tracked.set(request, new TrackedRequest(destination, () => this.#notifyChange()));
  }

  /**
   * Returns whether the request was rejected because another node owns its rows, before it had written anything; that node must be asked
   * instead.
   */
  belongsElsewhere(request: Request): boolean {
    return hasMoved(request) && this.#tracked.get(request)?.hasBegun === false;
  }

  /** Resolves when no request that may write leaving rows is in progress, except requests that wait for something else themselves. */
  async waitUntilDrained(isLeaving: IsLeaving): Promise<void> {
    const isHeld = (request: Request): boolean => {
      const tracked = this.#tracked.get(request);
      return tracked?.mayWrite === true && isLeaving(tracked.part) && !READ_METHODS.has(request.method);
    };
    while ([...this.#running.keys()].some(isHeld)) await new Promise<void>((resolve) => this.#onChange.push(resolve));
  }

  /** Removes deadline and idle timeout from a long poll or stream; a stop does not wait for it. */
  exempt(request: Request): void {
    this.#server?.timeout(request, 0);
    if (this.#running.delete(request)) this.#exempted.add(request);
    this.#notifyChange();
  }

  /**
   * Cuts the connection of a response that is being sent, within a few seconds. The runtime would keep the part that it holds until the
   * client reads it.
   */
  cut(request: Request): void {
    this.#server?.timeout(request, CUT_TIMEOUT_SECONDS);
  }

  /** Returns the number of requests in progress. */
  get size(): number {
    return this.#running.size;
  }

  /** Rejects new requests and resolves when the last one has been answered. */
  async drain(): Promise<void> {
    this.#isStopping = true;
    if (this.#running.size > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  #notifyChange(): void {
    for (const resolve of this.#onChange.splice(0)) resolve();
  }

  /** Starts a new turn: waiting requests continue in order of arrival. */
  #startTurn(): void {
    const next = this.#waitingStarts.splice(0, MAX_STARTED_PER_TURN);
    this.#startedThisTurn = next.length + this.#waitingStarts.length;
    if (this.#startedThisTurn > 0) setImmediate(() => this.#startTurn());
    for (const start of next) start();
  }

  #expire(): void {
    const latestStart = this.#clock.monotonic() - REQUEST_TIMEOUT_MS;
    for (const { startedAt, expire } of this.#running.values()) {
      if (startedAt > latestStart) break;
      expire(tookTooLong());
    }
  }
}

const tookTooLong = (): AppError => new AppError("overloaded", "The request took too long and was canceled.");
