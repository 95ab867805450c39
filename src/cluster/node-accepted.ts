// A connection that another node has opened, until its first frame tells what it is for.
import type { NodeListener } from "./connect.ts";
import { KIND, kindIn } from "./node-frames.ts";
import { linkOpened } from "./node-head.ts";
import type { WireSocket } from "./node-wire.ts";

export class Accepted implements NodeListener {
  readonly #socket: WireSocket;
  readonly #begin: (isStream: boolean) => NodeListener;
  #beginning = Buffer.alloc(0);
  #taker: NodeListener | undefined;

  /** `begin` answers who hears what comes from the first frame on. */
  constructor(socket: WireSocket, begin: (isStream: boolean) => NodeListener) {
    this.#socket = socket;
    this.#begin = begin;
    socket.write(linkOpened());
  }

  data(bytes: Buffer): void {
    if (this.#taker) {
      this.#taker.data(bytes);
      return;
    }
    this.#beginning = Buffer.concat([this.#beginning, bytes]);
    const kind = kindIn(this.#beginning);
    if (kind === undefined) return;
    this.#taker = this.#begin(kind === KIND.open);
    this.#taker.data(this.#beginning);
  }

  drain(): void {
    this.#taker?.drain?.();
  }

  ended(): void {
    if (this.#taker) this.#taker.ended();
    else this.#socket.end();
  }

  failed(): void {
    this.#taker?.failed();
  }
}
