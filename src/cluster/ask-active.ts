// A request is passed on to the node that does it. Until that has begun to answer, this one keeps what was said: a node that is not the one
// (any more) says so before it begins anything, and then the next one is asked. Once a node has begun, no other one is asked.
import type { X509Certificate } from "node:crypto";
import type { Clock } from "#base/clock.ts";
import { pause, within } from "#base/retry.ts";
import { partNamedIn, readAnswer } from "./answer-head.ts";
import { connectToNode, type NodePlace } from "./connect.ts";
import type { GoneNodes } from "./gone-nodes.ts";
import { plainAnswer } from "./head.ts";
import type { Link } from "./link.ts";

/** How long a connection waits for a node to be active, and how often it looks. */
const WAIT_MS = 15_000;
const LOOK_MS = 50;
/** A node that had it for so long, and says then that another one is to be asked, had begun to wait. */
const LONG_MS = 5_000;
/** How long a node may take to be connected to; a machine that is cut off answers nothing at all. */
const CONNECT_MS = 2_000;
/** A node that does not say within this time that it is not the active one has begun: the rest of a long body follows. */
const BEGUN_MS = 250;

const UNKNOWN = "The node that was to do this does not answer any more: it may have been done or not.";

/** Another node: `isGone` tells, later, whether the life of it has ended that was asked. */
export type OtherPlace = NodePlace & { isGone?(): boolean };

export type AskOptions = {
  readonly clock: Clock;
  /** That of the nodes. */
  readonly token: string;
  /** Of this node, where nodes speak TLS. */
  readonly certificate: X509Certificate | undefined;
  /** The node that is to be asked now; undefined while none exists. */
  place(): OtherPlace | undefined;
  /** Who looks whether a node no longer exists that was asked; absent where it is this one. */
  readonly goneNodes?: GoneNodes | undefined;
  /** It only reads: where a node no longer exists before it has said anything, the next one is asked. */
  readonly isRead?: boolean | undefined;
  /** A node has said that another one is to be asked, for this part where it names one. True: immediately; undefined: no other one is to be. */
  elsewhere?(part: number | undefined): boolean | undefined;
};

/**
 * `begun`: a node answers. `lost`: it has begun nothing, and what was said to it was too much to be kept. `none`: none is there to be asked.
 * `elsewhere`: only the node that answered so was to be asked.
 */
export type Asked = "begun" | "lost" | "none" | "closed" | "elsewhere";

/** Passes the link on. While one node hands over to the next, new requests wait. */
export const askActive = async (options: AskOptions, link: Link): Promise<Asked> => {
  const { clock, place, elsewhere = () => false } = options;
  let until = clock.monotonic() + WAIT_MS;
  while (!link.isOver) {
    const at = place();
    const began = clock.monotonic();
    const asked = at && (await new Attempt(options, link).at(at));
    // A request that waits for something was at a node all the time, and is to go on at the next one.
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

/** One node is asked. */
class Attempt {
  readonly #options: AskOptions;
  readonly #link: Link;
  readonly #decided = Promise.withResolvers<Attempted | undefined>();
  #state: "connecting" | "asked" | "begun" | "over" = "connecting";
  #heard: Buffer = Buffer.alloc(0);
  /** How often something came. */
  #times = 0;

  constructor(options: AskOptions, link: Link) {
    this.#options = options;
    this.#link = link;
  }

  /** Undefined, or a part: nothing was begun, and another node may be asked. */
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

  /** The node no longer exists: whatever it does is not waited for. */
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
    // Nothing was said to it yet.
    if (this.#state === "connecting") this.#state = "over";
    // Whether it has begun is not known: the client hears of the end as it is.
    if (this.#state === "asked") this.#begin();
    if (this.#state === "begun") tell();
  }
}
