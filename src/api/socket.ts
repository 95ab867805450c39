// Native Bun WebSockets behind Elysia's routes. A route validates first and then calls `upgrade`; what happens on the socket is in
// a handler of three synchronous functions. Bun's own limits are never used as they come: a slow reader is closed with a reason and
// resumes by its cursor, a talkative client is cut (rules WS-1 to WS-4).
import type { Server, ServerWebSocket } from "bun";
import type { Clock } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";

/** Close codes we use, with the words a person finds in the browser's console. */
export const CLOSE = {
  normal: 1000,
  goingAway: 1001,
  protocol: 1002,
  policy: 1008,
  tooBig: 1009,
  internal: 1011,
  tryLater: 1013,
} as const;

/** Bytes that may wait for a reader before it is closed with a reason. */
export const SLOW_BYTES = 512 * 1024;
/** Bun's hard limit: beyond it the connection is cut without a word. */
export const CUT_BYTES = 1024 * 1024;
/** A closed reader that does not read its close frame is cut after this. */
const CUT_AFTER_MS = 5_000;
const PING_MS = 15_000;

export interface SocketHandler {
  /** The socket is open; the first frames may be sent. */
  open?(socket: Socket): void;
  /** A whole message came in. Must not wait. */
  message?(socket: Socket, data: string | Uint8Array): void;
  /** Everything that waited for the reader has been sent. */
  drain?(socket: Socket): void;
  /** The connection is gone, by whichever side. Called once. */
  close?(socket: Socket, code: number, reason: string): void;
}

type Data = { handler: SocketHandler; socket?: Socket };
type Raw = ServerWebSocket<Data>;

/** One open WebSocket. */
export class Socket {
  readonly #raw: Raw;
  readonly #sockets: Sockets;
  closing = false;

  constructor(raw: Raw, sockets: Sockets) {
    this.#raw = raw;
    this.#sockets = sockets;
  }

  /** Sends one frame. False when the socket is closed or was closed now because its reader is too slow. */
  send(data: string | Uint8Array, compress = false): boolean {
    if (this.closing) return false;
    const result = typeof data === "string" ? this.#raw.sendText(data, compress) : this.#raw.sendBinary(data, compress);
    if (result === 0) this.cut();
    return result !== 0 && !this.checkSpeed();
  }

  /** Frames published to this topic reach the socket until it closes. */
  follow(topic: string): void {
    this.#raw.subscribe(topic);
    this.#sockets.joined(topic, this);
  }

  /** Bytes that wait for the reader. */
  get waiting(): number {
    return this.#raw.getBufferedAmount();
  }

  /** Closes a reader that has fallen behind; true when it did. */
  checkSpeed(): boolean {
    if (this.waiting <= SLOW_BYTES) return false;
    this.close(CLOSE.tryLater, "reader too slow, resume from the last id seen");
    return true;
  }

  /** Says goodbye; a reader that does not listen is cut a little later. */
  close(code: number, reason: string): void {
    if (this.closing) return;
    this.closing = true;
    this.#sockets.left(this);
    this.#raw.close(code, reason.slice(0, 120));
    this.#sockets.clock.after(CUT_AFTER_MS, () => this.cut());
  }

  /** Ends the connection at once. */
  cut(): void {
    this.closing = true;
    this.#raw.terminate();
  }

  ping(): void {
    if (!this.closing) this.#raw.ping();
  }
}

/** All open sockets of the server, and the topics they follow. */
export class Sockets {
  readonly clock: Clock;
  readonly #open = new Set<Socket>();
  readonly #followers = new Map<string, Set<Socket>>();
  readonly #topicsOf = new WeakMap<Socket, string[]>();
  #server: Server<Data> | undefined;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  attach(server: Server<Data>): void {
    this.#server = server;
    this.clock.every(PING_MS, () => {
      for (const socket of this.#open) socket.ping();
    });
  }

  /** Turns this request into a WebSocket. Throws 400 when it is not an upgrade. The answer is never sent. */
  upgrade(request: Request, handler: SocketHandler, headers: Record<string, string> = {}): Response {
    if (request.headers.get("upgrade")?.toLowerCase() !== "websocket") {
      throw new AppError("invalid", "This endpoint is a WebSocket: send an upgrade request.");
    }
    if (!this.#server?.upgrade(request, { data: { handler }, headers })) {
      throw new AppError("invalid", "The WebSocket handshake is invalid.");
    }
    return new Response(null);
  }

  /** Sends one frame to every socket that follows the topic; readers that have fallen behind are closed. */
  publish(topic: string, frame: string, compress = false): void {
    const followers = this.#followers.get(topic);
    if (!followers) return;
    this.#server?.publish(topic, frame, compress);
    for (const socket of followers) socket.checkSpeed();
  }

  joined(topic: string, socket: Socket): void {
    let followers = this.#followers.get(topic);
    if (!followers) {
      followers = new Set();
      this.#followers.set(topic, followers);
    }
    followers.add(socket);
    this.#topicsOf.set(socket, [...(this.#topicsOf.get(socket) ?? []), topic]);
  }

  left(socket: Socket): void {
    for (const topic of this.#topicsOf.get(socket) ?? []) {
      const followers = this.#followers.get(topic);
      followers?.delete(socket);
      if (followers?.size === 0) this.#followers.delete(topic);
    }
    this.#topicsOf.delete(socket);
  }

  /** How many sockets are open, and how many topics are followed. */
  get counts(): { open: number; topics: number } {
    return { open: this.#open.size, topics: this.#followers.size };
  }

  /** Tells every client that the server goes away (1001). */
  closeAll(reason: string): void {
    for (const socket of [...this.#open]) socket.close(CLOSE.goingAway, reason);
  }

  /** What Bun.serve needs: everything is passed on to the handler of the socket's route. */
  readonly websocket = {
    maxPayloadLength: 4 * 1024 * 1024 + 64 * 1024,
    backpressureLimit: CUT_BYTES,
    closeOnBackpressureLimit: true,
    idleTimeout: 120,
    sendPings: true,
    perMessageDeflate: true,
    open: (raw: Raw): void => {
      const socket = new Socket(raw, this);
      raw.data.socket = socket;
      this.#open.add(socket);
      raw.data.handler.open?.(socket);
    },
    message: (raw: Raw, data: string | Buffer): void => {
      if (raw.data.socket) raw.data.handler.message?.(raw.data.socket, data);
    },
    drain: (raw: Raw): void => {
      if (raw.data.socket) raw.data.handler.drain?.(raw.data.socket);
    },
    close: (raw: Raw, code: number, reason: string): void => {
      const { socket } = raw.data;
      if (!socket) return;
      socket.closing = true;
      this.left(socket);
      this.#open.delete(socket);
      raw.data.handler.close?.(socket, code, reason);
    },
  };
}
