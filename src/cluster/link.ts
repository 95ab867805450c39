// One client connection that a standby node forwards: bytes in both directions with backpressure. Buffering is bounded by the two sockets.
import type { Socket } from "bun";
import type { Clock, Timer } from "#base/clock.ts";
import type { NodeListener } from "./connect.ts";

/** How long a client may take to close the connection after its end. */
const CLOSE_TIMEOUT_MS = 5_000;
/** The beginning of a response that opens a WebSocket. */
const SWITCHING = "HTTP/1.1 101 ";
const CLOSE_HEADER = Buffer.from("connection: close\r\n");
/** Maximum bytes buffered until a node has started. */
export const MAX_BUFFERED_BYTES = 1024 * 1024;

type LinkSide = {
  socket:
    | Pick<Socket, "write" | "pause" | "resume" | "shutdown" | "end" | "terminate" | "setKeepAlive" | "remoteAddress">
    | undefined;
  /** Data the socket has not accepted yet. */
  waiting: Buffer[];
  /** The peer of this side has ended, so this side is closed once everything is sent. */
  ending: boolean;
};

export class Link {
  readonly client: LinkSide = { socket: undefined, waiting: [], ending: false };
  readonly server: LinkSide = { socket: undefined, waiting: [], ending: false };
  /** The client's data, kept for the next node in case one declines; undefined once a node has started or the limit is exceeded. */
  kept: Buffer | undefined = Buffer.alloc(0);
  timer: Timer | undefined;
  /** The listener that took over the client's socket. */
  taker: NodeListener | undefined;
  /** Whether the request's head has been handled, so that more data from the client belongs to the forwarded request. */
  isForwarding = false;
  /** A WebSocket or an event stream, which continues until either side ends it. */
  isStream = false;
  /**
   * The request asks for a WebSocket that is not open. What the client sends now would reach the node as another request from this node,
   * and no WebSocket client sends before it has the response.
   */
  awaitsUpgrade = false;
  /** The beginning of the response to such a request. */
  #answerStart = "";
  /** The request is read-only and complete with its head. */
  isCompleteRead = false;
  #hasClientEnded = false;
  /** Whether reading from a client that sends a lot is paused until a node has started. */
  mayHold = true;
  #isClientPaused = false;
  /** This node has responded. More data from the client is read and dropped, because closing on unread data would cut off the response. */
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

  /** Takes data from the client. It is buffered until a node has started, or until the time to decline is over. */
  onClientData(bytes: Buffer): void {
    if (this.awaitsUpgrade) {
      this.close();
      return;
    }
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
    // The response may be a stream.
    this.isCompleteRead = false;
    this.connect(socket, false);
  }

  /** Closes the connection to a node that has started nothing. */
  disconnect(): void {
    this.server.socket?.end();
    this.#clearServer();
  }

  /** Cuts the connection to a node that has disappeared, without waiting for data that is still to be sent. */
  terminateServer(): void {
    this.server.socket?.terminate();
    this.#clearServer();
  }

  #clearServer(): void {
    this.server.socket = undefined;
    this.server.waiting = [];
    this.mayHold = true;
  }

  /** Resumes reading from the client without waiting for the node. `hasStarted`: the node responds, so no other node needs the data. */
  stopBuffering(hasStarted: boolean): void {
    this.mayHold = false;
    if (hasStarted || this.#isClientPaused) this.kept = undefined;
    this.#isClientPaused = false;
    if (this.server.waiting.length === 0) this.resumeClient();
  }

  #pauseClient(): void {
    if (this.mayHold) {
      this.#isClientPaused = true;
      this.client.socket?.pause();
    } else this.kept = undefined;
  }

  /** Sends a part of the node's response to the client. A refusal to open a WebSocket says that the connection cannot be used again. */
  forwardAnswer(bytes: Buffer): void {
    const isFirst = this.#answerStart === "";
    if (this.awaitsUpgrade && this.#answerStart.length < SWITCHING.length) {
      this.#answerStart += bytes.subarray(0, SWITCHING.length - this.#answerStart.length).toString("latin1");
      this.awaitsUpgrade = this.#answerStart !== SWITCHING;
    }
    const end = isFirst && this.awaitsUpgrade ? bytes.indexOf("\r\n") + 2 : 0;
    if (end > 2) this.write("client", Buffer.concat([bytes.subarray(0, end), CLOSE_HEADER, bytes.subarray(end)]));
    else this.write("client", bytes);
  }

  /**
   * Writes with backpressure: data that the socket does not accept is queued, and the other side is paused until the data has been sent.
   */
  write(to: "client" | "server", bytes: Buffer): void {
    const side = this[to];
    if (side.waiting.length > 0) side.waiting.push(Buffer.from(bytes));
    else {
      const acceptedBytes = Math.max(0, side.socket?.write(bytes) ?? 0);
      if (acceptedBytes < bytes.length) side.waiting.push(Buffer.from(bytes.subarray(acceptedBytes)));
    }
    if (side.waiting.length > 0) this[to === "client" ? "server" : "client"].socket?.pause();
  }

  drain(which: "client" | "server"): void {
    const side = this[which];
    for (let next = side.waiting[0]; next; next = side.waiting[0]) {
      const acceptedBytes = Math.max(0, side.socket?.write(next) ?? 0);
      if (acceptedBytes < next.length) {
        side.waiting[0] = next.subarray(acceptedBytes);
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
    this.#hasClientEnded = true;
    if (this.isCompleteRead && !this.isAnswered && !this.isStream) return true;
    this.endSide("server");
    return false;
  }

  /** Marks the response as a stream, which continues until either side ends it. */
  markStream(): void {
    this.isStream = true;
    if (this.#hasClientEnded) this.endSide("server");
  }

  /** Ends a side after its queued data; called when the other side has ended. */
  endSide(which: "client" | "server"): void {
    const side = this[which];
    side.ending = true;
    if (side.socket && side.waiting.length === 0) side.socket.shutdown();
    if (which === "client" || this.isAnswered) this.#closeSoon();
  }

  /** Sends a complete response from this node. */
  answer(bytes: Buffer): void {
    this.isForwarding = true;
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

  /**
   * Waits for the client to close the connection, and closes it after a timeout. Data that the client has not read yet extends the wait.
   */
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
