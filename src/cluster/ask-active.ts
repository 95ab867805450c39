// Forwards a request to the node that handles it. Until that node starts to respond, the request is buffered: a node that is not (or no
// longer) responsible says so before it starts, and the next one is asked. Once a node has started, no other is asked.
import type { X509Certificate } from "node:crypto";
import type { Clock } from "#base/clock.ts";
import { pause, within } from "#base/retry.ts";
import { partNamedIn, readAnswer } from "./answer-head.ts";
import { connectToNode, type NodePlace } from "./connect.ts";
import type { GoneNodes } from "./gone-nodes.ts";
import { plainAnswer } from "./head.ts";
import type { Link } from "./link.ts";

/** How long a connection waits for an active node, and how often it checks. */
const WAIT_MS = 15_000;
const LOOK_MS = 50;
/** If a node holds a request for this long before it names another node, the request had been waiting there for something. */
const LONG_MS = 5_000;
/** Connect timeout; an unreachable machine does not respond at all. */
const CONNECT_MS = 2_000;
/** A node that has not declined within this time has started: the rest of a long body follows. */
const BEGUN_MS = 250;

const UNKNOWN = "The node that was to do this does not answer any more: it may have been done or not.";

/** Another node. `isGone` tells later whether the incarnation that was asked has ended. */
export type OtherPlace = NodePlace & { isGone?(): boolean };

export type AskOptions = {
  readonly clock: Clock;
  /** The nodes' token. */
  readonly token: string;
  /** This node's certificate, if nodes use TLS. */
  readonly certificate: X509Certificate | undefined;
  /** Returns the node to ask now; undefined while none exists. */
  place(): OtherPlace | undefined;
  /** Checks whether a node that was asked still exists; absent when that is this node. */
  readonly goneNodes?: GoneNodes | undefined;
  /** The request is read-only: if a node disappears before responding, the next one is asked. */
  readonly isRead?: boolean | undefined;
  /**
   * Called when a node asks for another one, with the part if it names one. Returns true to ask it immediately, and undefined to ask no
   * other.
   */
  elsewhere?(part: number | undefined): boolean | undefined;
};

/**
 * `begun`: a node responds. `lost`: it started nothing, but too much had been sent to be buffered. `none`: there is no node to ask.
 * `elsewhere`: the node declined and no other may be asked.
 */
export type Asked = "begun" | "lost" | "none" | "closed" | "elsewhere";

/** Forwards the link. While one node hands over to the next, new requests wait. */
export const askActive = async (options: AskOptions, link: Link): Promise<Asked> => {
  const { clock, place, elsewhere = () => false } = options;
  let until = clock.monotonic() + WAIT_MS;
  while (!link.isOver) {
    const at = place();
    const began = clock.monotonic();
    const asked = at && (await new Attempt(options, link).at(at));
    // A long-running request had been at a node the whole time, and continues at the next one.
    if (clock.monotonic() - began > LONG_MS) until = clock.monotonic() + WAIT_MS;
    if (asked && typeof asked === "string") return asked;
    const isAtOnce = asked && elsewhere(asked.part);
    if (asked && isAtOnce === undefined) return "elsewhere";
    if (clock.monotonic() > until) return "none";
    if (!isAtOnce) await pause(clock, LOOK_MS);
  }
  return "closed";
};

type Attempted = Asked | { readonly part: number | undefined };

/** One attempt to ask a node. */
class Attempt {
  readonly #options: AskOptions;
  readonly #link: Link;
  readonly #decided = Promise.withResolvers<Attempted | undefined>();
  #state: "connecting" | "asked" | "begun" | "over" = "connecting";
  #heard: Buffer = Buffer.alloc(0);
  /** Number of times that data arrived. */
  #times = 0;

  constructor(options: AskOptions, link: Link) {
    this.#options = options;
    this.#link = link;
  }

  /** Returns undefined, or a part, when nothing was started and another node may be asked. */
  async at(place: OtherPlace): Promise<Attempted | undefined> {
    const { clock, certificate } = this.#options;
    const link = this.#link;
    const reached = connectToNode(place, certificate, {
      data: (bytes) => this.#hear(bytes),
      drain: () => this.#state !== "over" && link.drain("server"),
      ended: () => this.#end(() => link.ended("client")),
      failed: () => this.#end(() => link.close()),
    });
    const socket = (await within(clock, CONNECT_MS, reached)) ? await reached : undefined;
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
    this.#watch(place);
    clock.after(BEGUN_MS, () => this.#state === "asked" && link.letGo(false));
    return await this.#decided.promise;
  }

  #watch({ isGone }: OtherPlace): void {
    const link = this.#link;
    const isOver = (): boolean => this.#state === "over" || link.isOver;
    const heard = (): number => this.#times;
    if (!isGone) return;
    this.#options.goneNodes?.watch({
      get isOver() {
        return isOver();
      },
      get heard() {
        return heard();
      },
      get isHeldUp() {
        return link.client.waiting.length > 0;
      },
      isGone,
      cut: () => this.#cut(),
    });
  }

  /** Stops waiting for a node that has disappeared. */
  #cut(): void {
    const link = this.#link;
    const isBegun = this.#state === "begun";
    this.#state = "over";
    link.cutOff();
    if (!isBegun && this.#options.isRead && link.kept) {
      this.#decided.resolve({ part: undefined });
      return;
    }
    if (isBegun) link.close();
    else link.answer(plainAnswer("500 Internal Server Error", { message: UNKNOWN }));
    this.#decided.resolve("closed");
  }

  #hear(bytes: Buffer): void {
    const link = this.#link;
    this.#times++;
    if (this.#state === "begun") link.write("client", bytes);
    if (this.#state !== "asked") return;
    this.#heard = Buffer.concat([this.#heard, bytes]);
    const answer = readAnswer(this.#heard, this.#options.token);
    if (answer === undefined) return;
    if (answer === "elsewhere") {
      this.#state = "over";
      link.disconnect();
      this.#decided.resolve(link.kept ? { part: partNamedIn(this.#heard) } : "lost");
      return;
    }
    if (answer === "stream") link.streams();
    this.#begin();
    link.write("client", this.#heard);
  }

  #begin(): void {
    this.#state = "begun";
    this.#link.letGo(true);
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
