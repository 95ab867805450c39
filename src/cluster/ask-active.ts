// Forwards a request to the node that handles it. The request is buffered until that node starts to respond: a node that is not (or no
// longer) responsible declines before it starts, and the request is sent to the next one. After a node has started, no other node gets it.
import type { X509Certificate } from "node:crypto";
import type { Clock } from "#base/clock.ts";
import { finishesWithin, pause } from "#base/retry.ts";
import { parseNamedShard, readAnswer } from "./answer-head.ts";
import { connectToNode, type NodeAddress } from "./connect.ts";
import type { GoneNodeWatcher } from "./gone-nodes.ts";
import { toPlainResponse } from "./head.ts";
import type { Link } from "./link.ts";

/** How long a connection waits for an active node, and how often it checks. */
const ACTIVE_NODE_TIMEOUT_MS = 15_000;
const CHECK_INTERVAL_MS = 50;
/** If a node holds a request for this long before it names another node, the request had been waiting there for something. */
const LONG_HOLD_MS = 5_000;
/** Connect timeout; an unreachable machine does not respond at all. */
const CONNECT_TIMEOUT_MS = 2_000;
/** A node that has not declined within this time has started: the rest of a long body follows. */
const DECLINE_TIMEOUT_MS = 250;

const OUTCOME_UNKNOWN =
  "The node that handled this request stopped responding. The request may or may not have taken effect.";

/** Another node. `isGone` returns whether the incarnation that got the request has ended. */
export type WatchedNode = NodeAddress & { isGone?(): boolean };

export type ForwardOptions = {
  readonly clock: Clock;
  /** The nodes' token. */
  readonly token: string;
  /** This node's certificate, if nodes use TLS. */
  readonly certificate: X509Certificate | undefined;
  /** Returns the node to ask now; undefined while none exists. */
  findNode(): WatchedNode | undefined;
  /** Checks whether a node that was asked still exists; absent when that is this node. */
  readonly goneNodes?: GoneNodeWatcher | undefined;
  /** The request is read-only: if a node disappears before responding, the next one is asked. */
  readonly isRead?: boolean | undefined;
  /**
   * Called when a node asks for another one, with the shard if it names one. Returns true to ask it immediately, and undefined to ask no
   * other.
   */
  elsewhere?(shard: number | undefined): boolean | undefined;
};

/**
 * `begun`: a node responds. `lost`: it started nothing, but too much had been sent to be buffered. `none`: there is no node to ask.
 * `elsewhere`: the node declined and no other may be asked.
 */
export type ForwardResult = "begun" | "lost" | "none" | "closed" | "elsewhere";

/** Forwards the link. While one node hands over to the next, new requests wait. */
export const forwardToActive = async (options: ForwardOptions, link: Link): Promise<ForwardResult> => {
  const { clock, findNode, elsewhere = () => false } = options;
  let until = clock.monotonic() + ACTIVE_NODE_TIMEOUT_MS;
  while (!link.isOver) {
    const target = findNode();
    const began = clock.monotonic();
    const requested = target && (await new Attempt(options, link).forwardTo(target));
    // A long-running request had been at a node the whole time, and continues at the next one.
    if (clock.monotonic() - began > LONG_HOLD_MS) until = clock.monotonic() + ACTIVE_NODE_TIMEOUT_MS;
    if (requested && typeof requested === "string") return requested;
    const isAtOnce = requested && elsewhere(requested.part);
    if (requested && isAtOnce === undefined) return "elsewhere";
    if (clock.monotonic() > until) return "none";
    if (!isAtOnce) await pause(clock, CHECK_INTERVAL_MS);
  }
  return "closed";
};

type AttemptResult = ForwardResult | { readonly part: number | undefined };

/** One attempt to ask a node. */
class Attempt {
  readonly #options: ForwardOptions;
  readonly #link: Link;
  readonly #decided = Promise.withResolvers<AttemptResult | undefined>();
  #state: "connecting" | "asked" | "begun" | "over" = "connecting";
  #received: Buffer = Buffer.alloc(0);
  /** Number of times that data arrived. */
  #receivedCount = 0;

  constructor(options: ForwardOptions, link: Link) {
    this.#options = options;
    this.#link = link;
  }

  /** Returns undefined, or a shard, when nothing was started and another node may be asked. */
  async forwardTo(node: WatchedNode): Promise<AttemptResult | undefined> {
    const { clock, certificate } = this.#options;
    const link = this.#link;
    const reached = connectToNode(node, certificate, {
      data: (bytes) => this.#onData(bytes),
      drain: () => this.#state !== "over" && link.drain("server"),
      ended: () => this.#end(() => link.endSide("client")),
      failed: () => this.#end(() => link.close()),
    });
    const socket = (await finishesWithin(clock, CONNECT_TIMEOUT_MS, reached)) ? await reached : undefined;
    if (!socket || this.#state === "over") {
      this.#state = "over";
      void reached.then((late) => late?.end());
      return undefined;
    }
    if (link.isOver) {
      socket.end();
      return "closed";
    }
    this.#state = "asked";
    link.connect(socket, true);
    this.#watch(node);
    clock.after(DECLINE_TIMEOUT_MS, () => this.#state === "asked" && link.stopBuffering(false));
    return await this.#decided.promise;
  }

  #watch({ isGone }: WatchedNode): void {
    const link = this.#link;
    const isOver = (): boolean => this.#state === "over" || link.isOver;
    const receivedCount = (): number => this.#receivedCount;
    if (!isGone) return;
    this.#options.goneNodes?.watch({
      get isOver() {
        return isOver();
      },
      get receivedCount() {
        return receivedCount();
      },
      get isHeldUp() {
        return link.client.waiting.length > 0;
      },
      isGone,
      cut: () => this.#abort(),
    });
  }

  /** Stops waiting for a node that has disappeared. */
  #abort(): void {
    const link = this.#link;
    const isBegun = this.#state === "begun";
    this.#state = "over";
    link.terminateServer();
    if (!isBegun && this.#options.isRead && link.kept) {
      this.#decided.resolve({ part: undefined });
      return;
    }
    if (isBegun) link.close();
    else link.answer(toPlainResponse("500 Internal Server Error", { message: OUTCOME_UNKNOWN }));
    this.#decided.resolve("closed");
  }

  #onData(bytes: Buffer): void {
    const link = this.#link;
    this.#receivedCount++;
    if (this.#state === "begun") link.write("client", bytes);
    if (this.#state !== "asked") return;
    this.#received = Buffer.concat([this.#received, bytes]);
    const answer = readAnswer(this.#received, this.#options.token);
    if (answer === undefined) return;
    if (answer === "elsewhere") {
      this.#state = "over";
      link.disconnect();
      this.#decided.resolve(link.kept ? { part: parseNamedShard(this.#received) } : "lost");
      return;
    }
    if (answer === "stream") link.markStream();
    this.#begin();
    link.write("client", this.#received);
  }

  #begin(): void {
    this.#state = "begun";
    this.#link.stopBuffering(true);
    this.#decided.resolve("begun");
  }

  #end(tell: () => void): void {
    // Nothing has been sent to it yet.
    if (this.#state === "connecting") this.#state = "over";
    // Unknown whether it has started: the client gets the end of the connection unchanged.
    if (this.#state === "asked") this.#begin();
    if (this.#state === "begun") tell();
  }
}
