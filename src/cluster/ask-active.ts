// Forwards a request to the node that handles it. The request is buffered until that node starts to respond: a node that is not responsible
// declines before it starts anything, and the request is sent to the next one. After a node has started, no other node gets the request.
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
/** A node that names another node only after this time has held the request until then, so the timeout starts again. */
const LONG_HOLD_MS = 5_000;
/** Connect timeout; an unreachable machine does not respond at all. */
const CONNECT_TIMEOUT_MS = 2_000;
/** A node that has not declined within this time counts as started, and the remainder of a long body is sent to it. */
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
  /** Checks whether the asked node still exists; absent when only this node is asked. */
  readonly goneNodes?: GoneNodeWatcher | undefined;
  /** The request is read-only: if a node disappears before responding, the next one is asked. */
  readonly isRead?: boolean | undefined;
  /**
   * Called when a node declines, with the shard if the node names one. Returns true to ask the next node immediately, false to ask it after
   * a pause, and undefined to ask no other node.
   */
  elsewhere?(shard: number | undefined): boolean | undefined;
};

/**
 * `begun`: a node responds. `lost`: the node declined, but the request was too long to be buffered for another one. `none`: there is no
 * node to ask. `closed`: the client left or has its response. `elsewhere`: the node declined and no other may be asked.
 */
export type ForwardResult = "begun" | "lost" | "none" | "closed" | "elsewhere";

/** Forwards a client's request. While one node hands over to the next, new requests wait. */
export const forwardToActive = async (options: ForwardOptions, link: Link): Promise<ForwardResult> => {
  const { clock, findNode, elsewhere = () => false } = options;
  let deadline = clock.monotonic() + ACTIVE_NODE_TIMEOUT_MS;
  while (!link.isOver) {
    const target = findNode();
    const startedAt = clock.monotonic();
    const result = target && (await new Attempt(options, link).forwardTo(target));
    if (clock.monotonic() - startedAt > LONG_HOLD_MS) deadline = clock.monotonic() + ACTIVE_NODE_TIMEOUT_MS;
    if (result && typeof result === "string") return result;
    const isImmediate = result && elsewhere(result.part);
    if (result && isImmediate === undefined) return "elsewhere";
    if (clock.monotonic() > deadline) return "none";
    if (!isImmediate) await pause(clock, CHECK_INTERVAL_MS);
  }
  return "closed";
};

type AttemptResult = ForwardResult | { readonly part: number | undefined };

/** One attempt to ask a node. */
class Attempt {
  readonly #options: ForwardOptions;
  readonly #link: Link;
  readonly #result = Promise.withResolvers<AttemptResult | undefined>();
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
    const connecting = connectToNode(node, certificate, {
      data: (bytes) => this.#onData(bytes),
      drain: () => this.#state !== "over" && link.drain("server"),
      ended: () => this.#end(() => link.endSide("client")),
      failed: () => this.#end(() => link.close()),
    });
    const socket = (await finishesWithin(clock, CONNECT_TIMEOUT_MS, connecting)) ? await connecting : undefined;
    if (!socket || this.#state === "over") {
      this.#state = "over";
      void connecting.then((late) => late?.end());
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
    return await this.#result.promise;
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
      this.#result.resolve({ part: undefined });
      return;
    }
    if (isBegun) link.close();
    else link.answer(toPlainResponse("500 Internal Server Error", { message: OUTCOME_UNKNOWN }));
    this.#result.resolve("closed");
  }

  #onData(bytes: Buffer): void {
    const link = this.#link;
    this.#receivedCount++;
    if (this.#state === "begun") link.forwardAnswer(bytes);
    if (this.#state !== "asked") return;
    this.#received = Buffer.concat([this.#received, bytes]);
    const answer = readAnswer(this.#received, this.#options.token);
    if (answer === undefined) return;
    if (answer === "elsewhere") {
      this.#state = "over";
      link.disconnect();
      this.#result.resolve(link.kept ? { part: parseNamedShard(this.#received) } : "lost");
      return;
    }
    if (answer === "stream") link.markStream();
    this.#begin();
    link.forwardAnswer(this.#received);
  }

  #begin(): void {
    this.#state = "begun";
    this.#link.stopBuffering(true);
    this.#result.resolve("begun");
  }

  #end(forwardEnd: () => void): void {
    // Nothing has been sent to the node yet.
    if (this.#state === "connecting") this.#state = "over";
    // The node may or may not have started: the client gets the end of the connection unchanged.
    if (this.#state === "asked") this.#begin();
    if (this.#state === "begun") forwardEnd();
  }
}
