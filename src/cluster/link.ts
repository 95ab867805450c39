// One client connection that a spare forwards: bytes in both directions with backpressure. Buffering is bounded by the two sockets.
import type { Socket } from "bun";
import type { Clock, Timer } from "#base/clock.ts";
import type { NodeListener } from "./connect.ts";

/** How long a client may take to notice the end. */
const CLOSE_TIMEOUT_MS = 5_000;
/** Maximum bytes buffered until a node has started. */
export const MAX_BUFFERED_BYTES = 1024 * 1024;

type LinkSide = {
  socket:
    | Pick<Socket, "write" | "pause" | "resume" | "shutdown" | "end" | "terminate" | "setKeepAlive" | "remoteAddress">
    | undefined;
  /** Data the socket has not accepted yet. */
  waiting: Buffer[];
  /** The other side has ended, so this side ends once everything is sent. */
  ending: boolean;
};

export class Link {
  readonly client: LinkSide = { socket: undefined, waiting: [], ending: false };
  readonly server: LinkSide = { socket: undefined, waiting: [], ending: false };
  /** The client's data that a node, or the next one, must receive; undefined once a node has started or the limit is exceeded. */
  kept: Buffer | undefined = Buffer.alloc(0);
  timer: Timer | undefined;
  /** The listener that took over the client's socket. */
  taker: NodeListener | undefined;
  isPassing = false;
  /** Continues until either side ends it: a WebSocket or an event stream. */
  isStream = false;
  /** The request is read-only and complete with its head. */
  isWhole = false;
  #hasEnded = false;
  /** Whether reading from a client that sends a lot is paused until a node has started. */
  mayHold = true;
  #isClientPaused = false;
  /** Whatever the client still sends is read and dropped, because closing on unread data would cut off the response. */
  isAnswered = false;
  readonly #clock: Clock;
  readonly #onClosed: () => void;
  #isOver = false;

  constructor(clock: Clock, closed: () => void) {
    this.#clock = clock;
    this.#onClosed = closed;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Takes data from the client. It is buffered until a node has started, or has had the time to. */
  onClientData(bytes: Buffer): void {
    if (this.kept) this.kept = Buffer.concat([this.kept, bytes]);
    if (this.kept && this.kept.length > MAX_BUFFERED_BYTES) this.#pauseClient();
    if (this.server.socket) this.write("server", bytes);
  }

  /** Sends the buffered data to a node. */
  connect(socket: Socket, mayHold: boolean): void {
    this.server.socket = socket;
    this.mayHold = mayHold;
    const kept = this.kept ?? Buffer.alloc(0);
    this.#isClientPaused = false;
    if (kept.length > MAX_BUFFERED_BYTES) this.#pauseClient();
    this.resumeClient();
    this.write("server", kept);
    if (this.server.ending) this.endSide("server");
  }

  /** Connects the client to this node, which has started to respond. If the link is already over, closes the socket. */
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

  /** Leaves a node that has started nothing. */
  disconnect(): void {
    this.server.socket?.end();
    this.#clearServer();
  }

  /** Cuts the connection to a node that has disappeared, without sending an end. */
  terminateServer(): void {
    this.server.socket?.terminate();
    this.#clearServer();
  }

  #clearServer(): void {
    this.server.socket = undefined;
    this.server.waiting = [];
    this.mayHold = true;
  }

  /** Resumes reading from the client regardless of the node: nothing more, or nothing at all, is buffered for another node. */
  stopBuffering(isBegun: boolean): void {
    this.mayHold = false;
    if (isBegun || this.#isClientPaused) this.kept = undefined;
    this.#isClientPaused = false;
    if (this.server.waiting.length === 0) this.resumeClient();
  }

  #pauseClient(): void {
    if (this.mayHold) {
      this.#isClientPaused = true;
      this.client.socket?.pause();
    } else this.kept = undefined;
  }

  /** Writes with backpressure: data the socket does not accept is queued, and the other side is not read until it has been sent. */
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
    else this.resumeClient();
  }

  /** Resumes reading from the client unless a node must start first. */
  resumeClient(): void {
    if (!this.#isClientPaused) this.client.socket?.resume();
  }

  /**
   * Called when the client has ended its side. Returns true if it may only have half-closed after a complete request and is waiting for the
   * response.
   */
  onClientEnd(): boolean {
    this.#hasEnded = true;
    if (this.isWhole && !this.isAnswered && !this.isStream) return true;
    this.endSide("server");
    return false;
  }

  /** Marks the response as a stream, which continues until either side ends it. */
  markStream(): void {
    this.isStream = true;
    if (this.#hasEnded) this.endSide("server");
  }

  /** Called when one side has ended: the other is ended after the queued data. */
  endSide(tell: "client" | "server"): void {
    const side = this[tell];
    side.ending = true;
    if (side.socket && side.waiting.length === 0) side.socket.shutdown();
    if (tell === "client" || this.isAnswered) this.#closeSoon();
  }

  /** Sends a complete response from this node. */
  answer(bytes: Buffer): void {
    this.isPassing = true;
    this.isAnswered = true;
    this.#isClientPaused = false;
    this.kept = undefined;
    this.client.socket?.resume();
    this.write("client", bytes);
    this.endSide("client");
  }

  /** Hands the client's socket to another listener; `rest` is data that was already received. */
  handSocketTo(to: (socket: Socket) => NodeListener, rest: Buffer): void {
    this.timer?.cancel();
    this.#isOver = true;
    this.kept = undefined;
    this.taker = to(this.client.socket as Socket);
    this.#onClosed();
    if (rest.length > 0) this.taker.data(rest);
  }

  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.timer?.cancel();
    this.client.socket?.end();
    this.server.socket?.end();
    this.#onClosed();
  }

  /** The client closes when it notices the end; otherwise it is closed after a timeout. Unread data is given time to be read. */
  #closeSoon(): void {
    if (this.isAnswered && this.client.waiting.length === 0 && this.server.ending) this.close();
    this.timer?.cancel();
    const checkDrained = (): void => {
      if (this.client.waiting.length === 0) this.close();
      else this.timer = this.#clock.after(CLOSE_TIMEOUT_MS, checkDrained);
    };
    this.timer = this.#clock.after(CLOSE_TIMEOUT_MS, checkDrained);
  }
}
