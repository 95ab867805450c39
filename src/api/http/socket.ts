// Native Bun WebSockets behind Elysia's routes. A route validates first and then calls `upgrade`; a handler with a few synchronous
// functions does the rest. Bun's own limits apply to all sockets and are sized for apps, so the limits of the server's own sockets are
// enforced here: a slow client is closed with a reason and resumes by its cursor, and a client that sends too much is cut off (rules SK-1
// to SK-4).
import type { Server, ServerWebSocket } from "bun";
import type { Clock } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { shareOfMemory } from "#base/system/memory.ts";
import type { IsLeaving } from "#db/own-rows.ts";
import { Backlog } from "./backlog.ts";
import { ConnectionShares, VisitorLimits } from "./holders.ts";
import { MemoryGuard } from "./memory-guard.ts";
import { PingTimer } from "./ping.ts";

/** Close codes, with the reasons a person sees in the browser's console. */
export const CLOSE = {
  normal: 1000,
  goingAway: 1001,
  protocol: 1002,
  policy: 1008,
  tooBig: 1009,
  internal: 1011,
  tryLater: 1013,
} as const;

/** A client is closed with a reason when more than this is waiting for it as the next frame is sent. */
export const SLOW_BYTES = 512 * 1024;
/** Fewer bytes that wait for a client are not counted. */
const IGNORED_BYTES = 4 * 1024;
/**
 * A client of Slipway's own endpoints is cut off without a reason when more than this is waiting. Above SLOW_BYTES, this leaves room for
 * the largest burst of one turn.
 */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;
/** Maximum size of a message from a client of Slipway's own endpoints. */
const MAX_MESSAGE_BYTES = MAX_WAITING_BYTES + 64 * 1024;
/** Maximum size of an app's message, unless a setting overrides it. */
const MAX_APP_MESSAGE_BYTES = 32 * 1024 * 1024;
/**
 * A user's message to an app can have this share of an app's, because it is in memory before the app sees any of it, but at least 5 MiB.
 */
const INPUT_SHARE = 1 / 4;
const MIN_INPUT_BYTES = 5 * 1024 * 1024;
/** The share of the memory that unfinished messages of visitors to apps can occupy, and that of unknown relay clients. */
const UNFINISHED_SHARE = 1 / 8;
const MIN_ANONYMOUS = 8;
/** A closed socket whose client keeps the connection open holds its unfinished message for this long at most. */
export const RELEASE_TIMEOUT_MS = 20_000;
/**
 * Frames a client may send in a burst and per second; an agent's connection carries all traffic of its workspace. Beyond this, the client
 * is subject to backpressure.
 */
const BURST_FRAMES = 20_000;
const FRAMES_PER_SECOND = 10_000;
const AGENT_FACTOR = 10;
/** The clock is read once per this many frames. */
const CHECK_INTERVAL_FRAMES = 256;
/** A client that is being closed may take this long to read the rest and the reason; then it is cut off. */
export const CLOSE_TIMEOUT_MS = 120_000;
/** Maximum bytes waiting for all clients that are being closed; beyond it, the oldest are cut off. */
const MAX_CLOSING_BYTES = 64 * 1024 * 1024;
/** A closed socket whose client does not answer the close frame is cut off after this time. */
const CUT_TIMEOUT_MS = 5_000;
/** Characters published to a topic between two checks for slow clients; below this, no client can be far behind. */
const CHECK_INTERVAL_CHARS = 64 * 1024;

export interface SocketHandler {
  /** Called when the socket is open; frames can be sent from now on. */
  open?(socket: Socket): void;
  /** Called for each complete message. Must be synchronous. */
  message?(socket: Socket, data: string | Uint8Array): void;
  /** Called when everything waiting for the client has been sent. */
  drain?(socket: Socket): void;
  /** Called once when either side has closed the connection. */
  close?(socket: Socket, code: number, reason: string): void;
}

export type UpgradeOptions = {
  headers?: Record<string, string>;
  /** The holder of the socket, such as a user ID. One holder cannot have nearly all sockets. */
  who?: string;
  /** Maximum number of sockets of `who`. */
  maxOwn?: number;
  /** The owner of the machine that opens the socket, such as an agent's owner. The sockets of machines are limited per owner. */
  owner?: string;
  /** True for an agent's own connection. */
  agent?: boolean;
  /**
   * True if some frames are sent compressed. Otherwise no compression is negotiated, so that a client's message has as many bytes as the
   * client sent.
   */
  compressed?: boolean;
  /** True for an app's socket: messages may be as long as those of apps. */
  app?: boolean;
  /** The workspace of the app, for a visitor without an account. */
  visits?: string | undefined;
};

type TopicFollowers = { readonly topics: readonly string[]; readonly sockets: Set<Socket>; uncheckedChars: number };
type SocketData = {
  handler: SocketHandler;
  socket?: Socket;
  who?: string;
  owner?: string;
  agent?: boolean;
  app?: boolean;
  visits?: string | undefined;
  /** Whose memory the socket uses: the visited workspace of a visitor without an account, else `owner`, else `who`. */
  holder?: string | undefined;
  destination?: Destination | undefined;
};
/** The shard (`part`) of the socket's rows, or `here` for any node. */
type Destination = number | "here";
type RawSocket = ServerWebSocket<SocketData>;

const NO_TOPICS: readonly string[] = [];
const TAKEN_OVER_REASON = "another node has taken over";

/** One open WebSocket. */
export class Socket {
  readonly #raw: RawSocket;
  readonly #sockets: Sockets;
  closing = false;
  /** The topics that this socket follows. The strings are shared with `Sockets`. */
  topics: readonly string[] = NO_TOPICS;
  #closeFrame: { code: number; reason: string } | undefined;
  /** True when the handler asked to pause, or when the client has sent more frames than allowed. */
  #isPaused = false;
  #isThrottled = false;
  #uncountedFrames = 0;
  #frameCredit: number;
  #countedAt: number;

  constructor(raw: RawSocket, sockets: Sockets) {
    this.#raw = raw;
    this.#sockets = sockets;
    this.#frameCredit = BURST_FRAMES * this.#factor;
    this.#countedAt = sockets.clock.monotonic();
  }

  /** Sends one frame. Returns false when the socket is closed, or was just closed because its client is too slow. */
  send(data: string | Uint8Array, compress = false): boolean {
    if (this.closing || this.checkSpeed()) return false;
    const result = typeof data === "string" ? this.#raw.sendText(data, compress) : this.#raw.sendBinary(data, compress);
    if (result === 0 || this.waiting > MAX_WAITING_BYTES) this.terminate();
    else this.#sockets.backlog.note(this);
    return !this.closing;
  }

  /**
   * Sends bytes of a stream with its own flow control. Returns Bun's result: -1 when the socket is full and a `drain` follows; 0 when
   * dropped.
   */
  transmit(data: string | Uint8Array): number {
    if (this.closing) return 0;
    return typeof data === "string" ? this.#raw.sendText(data, false) : this.#raw.sendBinary(data, false);
  }

  /** Stops reading from the client until `resume`. Messages that were already read are still delivered. */
  pause(): void {
    this.#isPaused = true;
    this.#raw.pause();
  }

  resume(): void {
    this.#isPaused = false;
    if (!this.#isThrottled) this.#raw.resume();
  }

  /**
   * Counts a frame from the client, including pings, because each takes time from other clients. Reading from a client that sends too many
   * is paused.
   */
  onFrame(): void {
    this.#uncountedFrames += 1;
    if (this.#uncountedFrames < CHECK_INTERVAL_FRAMES || this.#isThrottled) return;
    const { clock } = this.#sockets;
    const now = clock.monotonic();
    const framesPerMs = (FRAMES_PER_SECOND * this.#factor) / 1_000;
    const gainedFrames = (now - this.#countedAt) * framesPerMs;
    this.#frameCredit = Math.min(this.#frameCredit + gainedFrames, BURST_FRAMES * this.#factor) - this.#uncountedFrames;
    this.#uncountedFrames = 0;
    this.#countedAt = now;
    if (this.#frameCredit >= 0) return;
    this.#isThrottled = true;
    this.#raw.pause();
    clock.after(-this.#frameCredit / framesPerMs, () => {
      this.#isThrottled = false;
      if (!this.#isPaused && !this.closing) this.#raw.resume();
    });
  }

  get #factor(): number {
    return this.#raw.data.agent ? AGENT_FACTOR : 1;
  }

  /** Subscribes the socket to a topic until it closes. */
  follow(topic: string): void {
    this.#raw.subscribe(topic);
    this.#sockets.addFollower(topic, this);
  }

  /** Unsubscribes the socket from all topics and returns them. */
  unfollow(): readonly string[] {
    const topics = this.#sockets.removeFollower(this);
    for (const topic of topics) this.#raw.unsubscribe(topic);
    return topics;
  }

  /** Returns the shard the socket belongs to; undefined if it was not set. */
  get destination(): Destination | undefined {
    return this.#raw.data.destination;
  }

  get holder(): string | undefined {
    return this.#raw.data.holder;
  }

  /** Counts the socket's memory for another holder from now on. */
  moveTo(holder: string): void {
    const { data } = this.#raw;
    if (this.closing || data.holder === holder) return;
    this.#sockets.moveHolder(this, data.holder, holder);
    data.holder = holder;
  }

  /** Returns the number of bytes waiting for the client. */
  get waiting(): number {
    return this.#raw.getBufferedAmount();
  }

  /** Closes a client that has fallen behind; returns true if it did. */
  checkSpeed(): boolean {
    if (this.waiting <= SLOW_BYTES) return false;
    this.closeSlow();
    return true;
  }

  /** Stops sending to a client that has fallen behind. When it reads again, it gets what is waiting and then the reason. */
  closeSlow(): void {
    if (!this.closing) this.#sockets.slowCloses += 1;
    this.#closeLater(CLOSE.tryLater, "reader too slow, resume from the last id seen");
  }

  /** Called when the waiting bytes have been sent. Sends the delayed close frame, if any. */
  onDrained(): void {
    // Sockets with their own flow control are never noted, and must not be while they make progress.
    this.#sockets.backlog.refresh(this);
    if (this.#closeFrame && this.waiting === 0) this.#end(this.#closeFrame.code, this.#closeFrame.reason);
  }

  /** Closes the connection; a client that does not respond is cut off shortly after. */
  close(code: number, reason: string): void {
    if (this.closing) return;
    this.closing = true;
    this.#sockets.removeFollower(this);
    this.#end(code, reason);
  }

  /** Cuts the connection immediately. */
  terminate(): void {
    this.closing = true;
    this.#raw.terminate();
  }

  // Bun gives a closed socket only a few seconds to send what is waiting, so a stalled client's close frame is sent after that.
  #closeLater(code: number, reason: string): void {
    if (this.closing) return;
    this.closing = true;
    this.unfollow();
    this.#closeFrame = { code, reason };
    this.#sockets.trackClosing(this);
    this.#sockets.clock.after(CLOSE_TIMEOUT_MS, () => this.terminate());
    this.onDrained();
  }

  #end(code: number, reason: string): void {
    this.#closeFrame = undefined;
    // Resumed so that the client's close frame is read.
    this.#raw.resume();
    this.#raw.close(code, reason.slice(0, 120));
    this.#sockets.clock.after(CUT_TIMEOUT_MS, () => this.terminate());
  }

  ping(): void {
    if (!this.closing) this.#raw.ping();
  }
}

/** All open sockets of the server and their topics. */
export class Sockets {
  readonly clock: Clock;
  /** The bytes that wait for clients of sockets and event streams. */
  readonly backlog = new Backlog(IGNORED_BYTES);
  readonly #open: PingTimer<Socket>;
  readonly #followers = new Map<string, TopicFollowers>();
  readonly #closingSlow = new Set<Socket>();
  readonly #holders: ConnectionShares;
  readonly #visitors: VisitorLimits;
  /** Closed sockets of visitors without an account that may still hold an unfinished message in memory. */
  readonly #closedVisitors: VisitorLimits;
  /** Closes sockets while memory is short, because their unfinished messages cannot be counted. */
  readonly #guard: MemoryGuard<Socket>;
  readonly #destinations = new WeakMap<Request, Destination>();
  readonly #isHere: (part: number) => boolean;
  #server: Server<SocketData> | undefined;
  /** Number of clients closed for being too slow, since the start. */
  slowCloses = 0;
  /** Open connections of agents. */
  agents = 0;
  /**
   * Maximum number of sockets of one kind that anyone can open. The runtime keeps a message in memory until its end arrives, and has one
   * limit of length for all sockets.
   */
  readonly maxAnonymous: number;

  /**
   * At most `limit` sockets may be open, shared among the callers; more get 503. `maxAppMessage`: maximum bytes of an app's message.
   * `readUsedBytes`: returns the bytes that this process occupies.
   */
  constructor(
    clock: Clock,
    limit = 20_000,
    isHere: (part: number) => boolean = () => true,
    maxAppMessage = MAX_APP_MESSAGE_BYTES,
    readUsedBytes = (): number => process.memoryUsage.rss(),
  ) {
    this.clock = clock;
    const maxMessageBytes = Math.max(maxAppMessage * INPUT_SHARE, MIN_INPUT_BYTES);
    this.websocket.maxPayloadLength = maxMessageBytes;
    // One complete message plus the bytes that waited before it.
    this.websocket.backpressureLimit = Math.max(maxAppMessage, MAX_MESSAGE_BYTES) + MAX_WAITING_BYTES;
    this.maxAnonymous = Math.max(Math.floor(shareOfMemory(UNFINISHED_SHARE) / maxMessageBytes), MIN_ANONYMOUS);
    this.#visitors = new VisitorLimits(this.maxAnonymous);
    this.#closedVisitors = new VisitorLimits(this.maxAnonymous);
    this.#isHere = isHere;
    this.#open = new PingTimer(clock);
    this.#holders = new ConnectionShares(limit);
    // A close frame would leave the memory occupied until the client answers it.
    this.#guard = new MemoryGuard({ clock, readUsedBytes, maxMessageBytes, close: (socket) => socket.terminate() });
  }

  attach(server: Server<SocketData>): void {
    this.#server = server;
  }

  /** Sets the destination of a request; its socket closes when that shard leaves this node. */
  assign(request: Request, destination: Destination): void {
    this.#destinations.set(request, destination);
  }

  /**
   * Upgrades the request to a WebSocket. Throws 400 when it is not an upgrade, 503 when too many are open. The returned response is never
   * sent.
   */
  upgrade(
    request: Request,
    handler: SocketHandler,
    { headers = {}, who, maxOwn, owner, agent, app, visits, compressed = false }: UpgradeOptions = {},
  ): Response {
    if (request.headers.get("upgrade")?.toLowerCase() !== "websocket") {
      throw new AppError("invalid", "This endpoint is a WebSocket: send an upgrade request.");
    }
    this.#holders.check({ who, owner, maxOwn });
    if (visits !== undefined) {
      this.#visitors.check(visits);
      this.#closedVisitors.check(visits);
    }
    // Each agent has few sockets, so the memory of a person's agents is counted together.
    const holder = visits ?? owner ?? who;
    if (holder !== undefined) this.#guard.check(holder);
    // Bun negotiates compression by this header.
    if (!compressed) request.headers.delete("sec-websocket-extensions");
    if (
      !this.#server?.upgrade(request, {
        data: { handler, who, owner, agent, app, visits, holder, destination: this.#destinations.get(request) },
        headers,
      })
    ) {
      throw new AppError("invalid", "The WebSocket handshake is invalid.");
    }
    return new Response(null);
  }

  /** Sends one frame to every socket subscribed to the topic; clients that have fallen behind are closed. */
  publish(topic: string, frame: string, compress = false): void {
    const followers = this.#followers.get(topic);
    if (!followers) return;
    followers.uncheckedChars += frame.length;
    if (followers.uncheckedChars > CHECK_INTERVAL_CHARS) {
      followers.uncheckedChars = 0;
      for (const socket of followers.sockets) {
        if (!socket.checkSpeed()) this.backlog.note(socket);
      }
    }
    this.#server?.publish(topic, frame, compress);
  }

  /** Returns the number of sockets subscribed to the topic; with none, a publisher can skip encoding the frame. */
  countFollowers(topic: string): number {
    return this.#followers.get(topic)?.sockets.size ?? 0;
  }

  addFollower(topic: string, socket: Socket): void {
    let followers = this.#followers.get(topic);
    if (!followers) {
      followers = { topics: [topic], sockets: new Set(), uncheckedChars: 0 };
      this.#followers.set(topic, followers);
    }
    followers.sockets.add(socket);
    // Most sockets follow one topic and share its list.
    socket.topics = socket.topics.length === 0 ? followers.topics : [...socket.topics, topic];
  }

  /** Unsubscribes a closed socket from its topics and returns them. */
  removeFollower(socket: Socket): readonly string[] {
    const { topics } = socket;
    for (const topic of topics) {
      const followers = this.#followers.get(topic);
      followers?.sockets.delete(socket);
      if (followers?.sockets.size === 0) this.#followers.delete(topic);
    }
    socket.topics = NO_TOPICS;
    return topics;
  }

  /** Tracks a slow client that is being closed; when too much is waiting for all of them, the oldest are cut off. */
  trackClosing(socket: Socket): void {
    this.#closingSlow.add(socket);
    let bytes = 0;
    for (const closing of this.#closingSlow) bytes += closing.waiting;
    for (const closing of this.#closingSlow) {
      if (bytes <= MAX_CLOSING_BYTES) return;
      bytes -= closing.waiting;
      closing.terminate();
    }
  }

  #count({ data: { who, owner, agent, visits } }: RawSocket, change: 1 | -1): void {
    this.#holders.count({ who, owner }, change);
    if (agent) this.agents += change;
    if (visits === undefined) return;
    this.#visitors.count(visits, change);
    if (change === 1) return;
    this.#closedVisitors.count(visits, 1);
    this.clock.after(RELEASE_TIMEOUT_MS, () => this.#closedVisitors.count(visits, -1));
  }

  /** Returns the number of sockets whose memory counts for the holder. */
  countHeld(holder: string): number {
    return this.#guard.countHeld(holder);
  }

  moveHolder(socket: Socket, from: string | undefined, to: string): void {
    if (from !== undefined) this.#guard.delete(from, socket);
    this.#guard.add(to, socket);
  }

  /** The client's unfinished message is freed only when the connection ends, and the client can delay that. */
  #forget(holder: string, socket: Socket): void {
    if (!this.#guard.isFilling) this.#guard.delete(holder, socket);
    else this.clock.after(RELEASE_TIMEOUT_MS, () => this.#guard.delete(holder, socket));
  }

  /** Returns the number of subscriptions over all sockets and topics. */
  get followers(): number {
    let count = 0;
    for (const { sockets } of this.#followers.values()) count += sockets.size;
    return count;
  }

  /** Returns the number of open sockets and of topics with subscribers. */
  get counts(): { open: number; topics: number } {
    return { open: this.#open.size, topics: this.#followers.size };
  }

  /** Closes every socket because the server is going away (1001). */
  closeAll(reason: string): void {
    for (const socket of this.#open.all()) socket.close(CLOSE.goingAway, reason);
  }

  /** Closes the sockets of leaving rows (1001); clients reconnect at another node. Sockets without a known destination close too. */
  release(isLeaving: IsLeaving): void {
    for (const socket of this.#open.all()) {
      const { destination } = socket;
      if (destination === undefined || (typeof destination === "number" && isLeaving(destination)))
        socket.close(CLOSE.goingAway, TAKEN_OVER_REASON);
    }
  }

  /** The handlers for Bun.serve; they forward everything to the handler of the socket's route. */
  readonly websocket = {
    maxPayloadLength: 0,
    backpressureLimit: 0,
    closeOnBackpressureLimit: true,
    idleTimeout: 120,
    sendPings: true,
    perMessageDeflate: true,
    open: (raw: RawSocket): void => {
      const socket = new Socket(raw, this);
      raw.data.socket = socket;
      this.#open.add(socket);
      this.#count(raw, 1);
      if (raw.data.holder !== undefined) this.#guard.add(raw.data.holder, socket);
      handle(socket, () => raw.data.handler.open?.(socket));
      // The shard may have moved to another node while the request was in progress. The socket would then receive nothing more.
      const { destination } = raw.data;
      if (typeof destination === "number" && !this.#isHere(destination))
        socket.close(CLOSE.goingAway, TAKEN_OVER_REASON);
    },
    message: (raw: RawSocket, data: string | Buffer): void => {
      const { socket, app, handler } = raw.data;
      if (!socket || socket.closing) return;
      socket.onFrame();
      if (!app && data.length > MAX_MESSAGE_BYTES) socket.close(CLOSE.tooBig, "the message is too large");
      else handle(socket, () => handler.message?.(socket, data));
    },
    ping: (raw: RawSocket): void => raw.data.socket?.onFrame(),
    pong: (raw: RawSocket): void => raw.data.socket?.onFrame(),
    drain: (raw: RawSocket): void => {
      const { socket } = raw.data;
      if (!socket) return;
      socket.onDrained();
      if (!socket.closing) handle(socket, () => raw.data.handler.drain?.(socket));
    },
    close: (raw: RawSocket, code: number, reason: string): void => {
      const { socket } = raw.data;
      if (!socket) return;
      socket.closing = true;
      this.removeFollower(socket);
      this.#closingSlow.delete(socket);
      this.backlog.forget(socket);
      if (this.#open.delete(socket)) this.#count(raw, -1);
      const { holder } = raw.data;
      if (holder !== undefined) this.#forget(holder, socket);
      handle(socket, () => raw.data.handler.close?.(socket, code, reason));
    },
  };
}

/** Ends the socket of a handler that throws, because the runtime would end the process. */
const handle = (socket: Socket, run: () => void): void => {
  try {
    run();
  } catch (error) {
    log("http").error("the handler of a socket failed", { error });
    socket.close(CLOSE.internal, "internal error");
  }
};
