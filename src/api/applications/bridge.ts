// A browser's WebSocket on one side, an app's on the other: every message passes whole and in order, as fast as the slower side takes
// them, and each side hears why the other has gone (rule AX-10). Refuses a browser that sends more than the app reads.
import { Wakeup } from "#src/wire/wakeup.ts";
import type { WebSocketFrames, WebSocketMessage } from "#src/wire/websocket-frames.ts";
import { asWireError } from "#src/wire/wire-error.ts";
import { CLOSE, CUT_BYTES, type Socket, type SocketHandler } from "../http/socket.ts";

/** The longest message either way: what a socket takes at once. */
export const MAX_MESSAGE = CUT_BYTES - 64 * 1024;
/** What may wait for the app. Bun cannot pause a socket. */
const MAX_WAITING = 8 * 1024 * 1024;

export type BridgeEvents = {
  /** Something has passed. */
  used(): void;
  /** Begins to watch whether the caller may still; `end` closes. Returns how to stop. */
  watch(end: (reason: string) => void): () => void;
  /** Runs it some seconds later: an app that does not end its side by then is cut off. */
  later(run: () => void): void;
};

export class AppBridge implements SocketHandler {
  readonly #app: WebSocketFrames;
  readonly #events: BridgeEvents;
  readonly #room = new Wakeup();
  readonly #said = new Wakeup();
  #queue: WebSocketMessage[] = [];
  #waiting = 0;
  #isFull = false;
  #isGone = false;
  #stop = (): void => {};

  constructor(app: WebSocketFrames, events: BridgeEvents) {
    this.#app = app;
    this.#events = events;
  }

  open(socket: Socket): void {
    this.#stop = this.#events.watch((reason) => socket.close(CLOSE.policy, reason));
    void this.#listen(socket);
    void this.#tell();
  }

  message(socket: Socket, data: string | Uint8Array): void {
    const message: WebSocketMessage =
      typeof data === "string" ? { kind: "text", text: data } : { kind: "binary", bytes: data.slice() };
    // A character is at most three bytes, so this is never far off.
    this.#waiting += measureSize(message);
    if (this.#waiting > MAX_WAITING) {
      socket.close(CLOSE.tryLater, "more than the app reads");
      return;
    }
    this.#say(message);
    this.#events.used();
  }

  drain(): void {
    this.#isFull = false;
    this.#room.ring();
  }

  close(_socket: Socket, code: number, reason: string): void {
    this.#isGone = true;
    this.#stop();
    this.#room.ring();
    this.#say({ kind: "close", code: code === 1005 || isSendable(code) ? code : CLOSE.goingAway, reason });
    this.#events.later(() => this.#app.reset("Nobody listens any more."));
  }

  #say(message: WebSocketMessage): void {
    this.#queue.push(message);
    this.#said.ring();
  }

  /** From the browser to the app, until one of them has gone. */
  async #tell(): Promise<void> {
    try {
      for (;;) {
        const message = this.#queue.shift();
        if (message === undefined) {
          await this.#said.wait();
          continue;
        }
        await this.#app.send(message);
        this.#waiting -= measureSize(message);
        if (message.kind === "close") return await this.#app.end();
      }
    } catch {
      // The listening side says why.
    }
  }

  /** From the app to the browser. */
  async #listen(socket: Socket): Promise<void> {
    try {
      for (;;) {
        const message = await this.#app.next();
        if (message === undefined) break;
        if (message.kind === "ping") this.#say({ kind: "pong", bytes: message.bytes });
        if (message.kind === "close") {
          const code = message.code === 1005 ? CLOSE.normal : message.code;
          socket.close(isSendable(code) ? code : CLOSE.protocol, message.reason);
          return;
        }
        if (message.kind !== "text" && message.kind !== "binary") continue;
        this.#events.used();
        if (!(await this.#show(socket, message.kind === "text" ? message.text : message.bytes))) return;
      }
      socket.close(CLOSE.internal, "the app has gone away");
    } catch (error) {
      const { failure, message } = asWireError(error);
      socket.close(failure === "too_large" ? CLOSE.tooBig : CLOSE.internal, `the app has gone away: ${message}`);
    }
  }

  /** False when the socket has gone. */
  async #show(socket: Socket, data: string | Uint8Array): Promise<boolean> {
    while (this.#isFull && !this.#isGone) await this.#room.wait();
    if (this.#isGone) return false;
    const taken = socket.transmit(data);
    this.#isFull = taken < 0;
    // An empty message has sent nothing, too.
    return taken !== 0 || data.length === 0;
  }
}

/** The others are never sent (RFC 6455, 7.4). */
const isSendable = (code: number): boolean =>
  (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);

const measureSize = (message: WebSocketMessage): number =>
  message.kind === "text" ? message.text.length : message.kind === "close" ? 0 : message.bytes.byteLength;
