// Connects a browser's WebSocket to an app's. Every message passes whole and in order, with backpressure in both directions, and each side
// gets the other's close reason (rule AX-10). Buffers are bounded: neither side is read while the other does not read.
import { AppError } from "#base/errors.ts";
import { toWireError, Wakeup, type WebSocketFrames, type WebSocketMessage, WireError } from "#src/wire/index.ts";
import { CLOSE, type Socket, type SocketHandler } from "../http/socket.ts";

/** When more than this is waiting for the app, the browser is not read. */
const PAUSE_BYTES = 1024 * 1024;
/** When at most this is waiting, reading from the browser resumes. */
const RESUME_BYTES = PAUSE_BYTES / 4;
/** Overhead of a waiting message in addition to its content. */
const MESSAGE_BYTES = 64;

export type BridgeEvents = {
  /** Called when data has passed. */
  onUse(): void;
  /** Watches whether the caller keeps their access; `end` closes. Returns a function that stops watching. */
  watch(end: (reason: string) => void): () => void;
  /** Runs a function after a few seconds, to cut off an app that does not close its side by then. */
  runLater(run: () => void): void;
};

export class AppBridge implements SocketHandler {
  readonly #app: WebSocketFrames;
  readonly #events: BridgeEvents;
  readonly #drained = new Wakeup();
  readonly #messageQueued = new Wakeup();
  #queue: WebSocketMessage[] = [];
  #waitingBytes = 0;
  #isPaused = false;
  #isClosed = false;
  #stopWatching = (): void => {};

  constructor(app: WebSocketFrames, events: BridgeEvents) {
    this.#app = app;
    this.#events = events;
  }

  open(socket: Socket): void {
    this.#stopWatching = this.#events.watch((reason) => socket.close(CLOSE.policy, reason));
    void this.#listen(socket);
    void this.#forwardToApp(socket);
  }

  message(socket: Socket, data: string | Uint8Array): void {
    const message: WebSocketMessage =
      typeof data === "string" ? { kind: "text", text: data } : { kind: "binary", bytes: data.slice() };
    this.#enqueue(message);
    if (this.#isFullForApp && !this.#isPaused) {
      this.#isPaused = true;
      socket.pause();
    }
    this.#events.onUse();
  }

  drain(): void {
    this.#drained.wake();
  }

  close(_socket: Socket, code: number, reason: string): void {
    this.#isClosed = true;
    this.#stopWatching();
    this.#drained.wake();
    this.#enqueue({ kind: "close", code: code === 1005 || isSendable(code) ? code : CLOSE.goingAway, reason });
    this.#events.runLater(() => this.#app.reset("The client has disconnected."));
  }

  get #isFullForApp(): boolean {
    return this.#waitingBytes > PAUSE_BYTES;
  }

  #enqueue(message: WebSocketMessage): void {
    this.#waitingBytes += measureSize(message);
    this.#queue.push(message);
    this.#messageQueued.wake();
  }

  /** Forwards from the browser to the app until one of them disconnects. */
  async #forwardToApp(socket: Socket): Promise<void> {
    try {
      for (;;) {
        const message = this.#queue.shift();
        if (message === undefined) {
          await this.#messageQueued.wait();
          continue;
        }
        await this.#app.send(message);
        this.#waitingBytes -= measureSize(message);
        if (message.kind === "close") return await this.#app.end();
        if (this.#isPaused && this.#waitingBytes <= RESUME_BYTES) {
          this.#isPaused = false;
          socket.resume();
        }
      }
    } catch {
      // The listening side reports the reason.
    }
  }

  /** Forwards from the app to the browser. */
  async #listen(socket: Socket): Promise<void> {
    try {
      for (;;) {
        const message = await this.#app.next();
        if (message === undefined) break;
        // An app that sends pings but does not read gets no more pongs until it reads.
        if (message.kind === "ping" && !this.#isFullForApp) this.#enqueue({ kind: "pong", bytes: message.bytes });
        if (message.kind === "close") {
          const code = message.code === 1005 ? CLOSE.normal : message.code;
          socket.close(isSendable(code) ? code : CLOSE.protocol, message.reason);
          return;
        }
        if (message.kind !== "text" && message.kind !== "binary") continue;
        this.#events.onUse();
        if (!(await this.#forwardToBrowser(socket, message.kind === "text" ? message.text : message.bytes))) return;
      }
      socket.close(CLOSE.internal, "the app has gone away");
    } catch (error) {
      const { failure, message } = toWireError(error);
      // The messages exceed the memory budget of the workspace or of all apps.
      if (error instanceof AppError && !(error instanceof WireError)) socket.close(CLOSE.tryLater, error.message);
      else if (failure === "too_large")
        socket.close(CLOSE.tooBig, "the app sent a message that is longer than app_message_mb");
      else socket.close(CLOSE.internal, `the app has gone away: ${message}`);
    } finally {
      this.#app.discard();
    }
  }

  /** Resolves when at most 1 MiB still waits for the browser. Returns false when the socket has closed. */
  async #forwardToBrowser(socket: Socket, data: string | Uint8Array): Promise<boolean> {
    if (this.#isClosed) return false;
    const sentBytes = socket.transmit(data);
    // Each partial write ends with a `drain`.
    if (sentBytes < 0) while (socket.waiting > PAUSE_BYTES && !this.#isClosed) await this.#drained.wait();
    // For an empty message, zero bytes sent is a success too.
    return !this.#isClosed && (sentBytes !== 0 || data.length === 0);
  }
}

/** All other codes are never sent (RFC 6455, 7.4). */
const isSendable = (code: number): boolean =>
  (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);

// A character takes at most three bytes, so the estimate is close enough.
const measureSize = (message: WebSocketMessage): number => MESSAGE_BYTES + getContent(message).length;

const getContent = (message: WebSocketMessage): string | Uint8Array =>
  message.kind === "text" ? message.text : message.kind === "close" ? message.reason : message.bytes;
