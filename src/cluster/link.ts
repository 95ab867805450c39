// One connection of a client that a spare passes on: bytes in both directions, as fast as the slower side takes them. What waits is bounded
// by the buffers of the two sockets: a side that does not take what comes stops the other one from being read.
import type { Socket } from "bun";
import type { Clock, Timer } from "#base/clock.ts";
import type { NodeListener } from "./connect.ts";

/** How long a client may take to hear the end. */
const END_MS = 5_000;
/** Bytes that are kept until a node has begun. */
export const EARLY_BYTES = 1024 * 1024;

type Side = {
  socket:
    | Pick<Socket, "write" | "pause" | "resume" | "shutdown" | "end" | "terminate" | "setKeepAlive" | "remoteAddress">
    | undefined;
  /** What it has not taken yet. */
  waiting: Buffer[];
  /** The other side has ended: so does this one, once it has taken all. */
  ending: boolean;
};

export class Link {
  readonly client: Side = { socket: undefined, waiting: [], ending: false };
  readonly server: Side = { socket: undefined, waiting: [], ending: false };
  /** What the client has said and a node has to hear, or the next one; undefined when a node has begun, or it is too much. */
  kept: Buffer | undefined = Buffer.alloc(0);
  timer: Timer | undefined;
  /** Anyone who the socket of the client was given to. */
  taker: NodeListener | undefined;
  isPassing = false;
  /** It continues until someone ends it: a WebSocket, or a stream of events. */
  isStream = false;
  /** It only asks, and has said all that it asks for with its head. */
  isWhole = false;
  #hasEnded = false;
  /** A client that says much is not read on before a node has begun. */
  mayHold = true;
  #isHeld = false;
  /** What the client still says is read and dropped: closing on it would cut off the answer. */
  isAnswered = false;
  readonly #clock: Clock;
  readonly #closed: () => void;
  #isOver = false;

  constructor(clock: Clock, closed: () => void) {
    this.#clock = clock;
    this.#closed = closed;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** What the client says. It is kept until a node has begun, or was given the time for that. */
  hear(bytes: Buffer): void {
    if (this.kept) this.kept = Buffer.concat([this.kept, bytes]);
    if (this.kept && this.kept.length > EARLY_BYTES) this.#hold();
    if (this.server.socket) this.write("server", bytes);
  }

  /** Says to a node what was kept. */
  connect(socket: Socket, mayHold: boolean): void {
    this.server.socket = socket;
    this.mayHold = mayHold;
    const kept = this.kept ?? Buffer.alloc(0);
    this.#isHeld = false;
    if (kept.length > EARLY_BYTES) this.#hold();
    this.readOn();
    this.write("server", kept);
    if (this.server.ending) this.ended("server");
  }

  /** This node answers, on this connection. Anyone who does not read any more no longer exists by now. */
  begin(socket: Socket): void {
    if (this.#isOver) {
      socket.end();
      return;
    }
    this.kept = undefined;
    // It may be a stream.
    this.isWhole = false;
    this.connect(socket, false);
  }

  /** The node has begun nothing and is left. */
  disconnect(): void {
    this.server.socket?.end();
    this.#forgetServer();
  }

  /** The node no longer exists: it hears nothing more, not even the end. */
  cutOff(): void {
    this.server.socket?.terminate();
    this.#forgetServer();
  }

  #forgetServer(): void {
    this.server.socket = undefined;
    this.server.waiting = [];
    this.mayHold = true;
  }

  /** The client is read on, whatever a node does: nothing is kept for another one, or no more than now. */
  letGo(isBegun: boolean): void {
    this.mayHold = false;
    if (isBegun || this.#isHeld) this.kept = undefined;
    this.#isHeld = false;
    if (this.server.waiting.length === 0) this.readOn();
  }

  #hold(): void {
    if (this.mayHold) {
      this.#isHeld = true;
      this.client.socket?.pause();
    } else this.kept = undefined;
  }

  /** What the socket does not take now waits, and the other side is not read until it has gone. */
  write(to: "client" | "server", bytes: Buffer): void {
    const side = this[to];
    if (side.waiting.length > 0) side.waiting.push(Buffer.from(bytes));
    else {
      const taken = Math.max(0, side.socket?.write(bytes) ?? 0);
      if (taken < bytes.length) side.waiting.push(Buffer.from(bytes.subarray(taken)));
    }
    if (side.waiting.length > 0) this[to === "client" ? "server" : "client"].socket?.pause();
  }

  drain(which: "client" | "server"): void {
    const side = this[which];
    for (let next = side.waiting[0]; next; next = side.waiting[0]) {
      const taken = Math.max(0, side.socket?.write(next) ?? 0);
      if (taken < next.length) {
        side.waiting[0] = next.subarray(taken);
        return;
      }
      side.waiting.shift();
    }
    if (side.ending) side.socket?.shutdown();
    else if (which === "client") this.server.socket?.resume();
    else this.readOn();
  }

  /** Reads the client, unless a node has to begin first. */
  readOn(): void {
    if (!this.#isHeld) this.client.socket?.resume();
  }

  /** The client has said all, or has gone. True: it may only have closed its side behind a request that is whole, and wait for the answer. */
  hearEnd(): boolean {
    this.#hasEnded = true;
    if (this.isWhole && !this.isAnswered && !this.isStream) return true;
    this.ended("server");
    return false;
  }

  /** The answer continues until someone ends it. */
  streams(): void {
    this.isStream = true;
    if (this.#hasEnded) this.ended("server");
  }

  /** One side has said all: the other hears of it behind what still waits. */
  ended(tell: "client" | "server"): void {
    const side = this[tell];
    side.ending = true;
    if (side.socket && side.waiting.length === 0) side.socket.shutdown();
    if (tell === "client" || this.isAnswered) this.#closeSoon();
  }

  /** A whole answer of this node's own. */
  answer(bytes: Buffer): void {
    this.isPassing = true;
    this.isAnswered = true;
    this.#isHeld = false;
    this.kept = undefined;
    this.client.socket?.resume();
    this.write("client", bytes);
    this.ended("client");
  }

  /** Gives the socket of the client away, and forgets it; `rest`: what it has said already. */
  give(to: (socket: Socket) => NodeListener, rest: Buffer): void {
    this.timer?.cancel();
    this.#isOver = true;
    this.kept = undefined;
    this.taker = to(this.client.socket as Socket);
    this.#closed();
    if (rest.length > 0) this.taker.data(rest);
  }

  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.timer?.cancel();
    this.client.socket?.end();
    this.server.socket?.end();
    this.#closed();
  }

  /** The client closes when it has heard the end; one that does not is closed. What it has not read yet is given the time. */
  #closeSoon(): void {
    if (this.isAnswered && this.client.waiting.length === 0 && this.server.ending) this.close();
    this.timer?.cancel();
    const look = (): void => {
      if (this.client.waiting.length === 0) this.close();
      else this.timer = this.#clock.after(END_MS, look);
    };
    this.timer = this.#clock.after(END_MS, look);
  }
}
