// Native Bun WebSockets behind Elysia's routes. A route validates first and then calls `upgrade`; what happens on the socket is in
// a handler of a few synchronous functions. Bun's own limits hold for all sockets alike and are those of apps; the limits of the server's
// own sockets stand here: a slow reader is closed with a reason and resumes by its cursor, a talkative client is cut (rules SK-1 to SK-4).
import type { Server, ServerWebSocket } from "bun";
import type { Clock } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import { ALL_PARTS, type Parts } from "#base/parts.ts";
import { Holders } from "./holders.ts";
import { PingTimer } from "./ping.ts";

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

/** A reader for which more than this waits when the next frame is due is closed with a reason. */
export const SLOW_BYTES = 512 * 1024;
/** A reader of our own frames for which more than this waits is cut without a word. Room for the largest burst of one turn above SLOW_BYTES. */
const CUT_BYTES = 4 * 1024 * 1024;
/** The longest message that a client of our own endpoints sends. */
const MAX_MESSAGE_BYTES = CUT_BYTES + 64 * 1024;
/** The longest message of an app, where no setting is read. */
const MAX_APP_MESSAGE_BYTES = 32 * 1024 * 1024;
/** Frames that a client may send at a time, and each second; an agent's carry everything of its workspace. What comes beyond waits on its side. */
const BURST_FRAMES = 20_000;
const FRAMES_PER_SECOND = 10_000;
const AGENT_FACTOR = 10;
/** The time is looked at once for so many. */
const LOOK_EVERY_FRAMES = 256;
/** A reader that was told to go may take this long to read the rest and why; then it is cut. */
const FAREWELL_MS = 120_000;
/** All readers that were told to go may keep this much waiting together; beyond it the first of them are cut. */
const FAREWELL_BYTES = 64 * 1024 * 1024;
/** A closed socket whose client does not answer the close frame is cut after this. */
const CUT_AFTER_MS = 5_000;
/** Characters published to a topic between two looks at how far its readers have got; below it nobody can have fallen behind by much. */
const LOOK_EVERY = 64 * 1024;

export interface SocketHandler {
  /** The socket is open; the first frames may be sent. */
  open?(socket: Socket): void;
  /** A whole message came in. Must not wait. */
  message?(socket: Socket, data: string | Uint8Array): void;
  /** Everything that waited for the reader has been sent. */
  drain?(socket: Socket): void;
  /** The connection has disconnected, by whichever side. Called once. */
  close?(socket: Socket, code: number, reason: string): void;
}

export type UpgradeOptions = {
  headers?: Record<string, string>;
  /** Whose socket this is, such as a user id: nobody may hold nearly all of them. */
  who?: string;
  /** It is an agent's own connection. */
  agent?: boolean;
  /** Some of its frames are sent compressed. Otherwise no compression is negotiated: a client's messages are then as long as what it sends. */
  compressed?: boolean;
  /** It is an app's: messages may be as long as those of apps. */
  app?: boolean;
};

type Followed = { readonly alone: readonly string[]; readonly sockets: Set<Socket>; unlooked: number };
type Data = {
  handler: SocketHandler;
  socket?: Socket;
  who?: string;
  agent?: boolean;
  app?: boolean;
  place?: Place | undefined;
};
/** A part, or any node. */
type Place = number | "here";
type Raw = ServerWebSocket<Data>;

const NO_TOPICS: readonly string[] = [];
const GOES_ON = "another node goes on with this";

/** One open WebSocket. */
export class Socket {
  readonly #raw: Raw;
  readonly #sockets: Sockets;
  closing = false;
  /** The topics it follows, under the names `Sockets` keeps. */
  topics: readonly string[] = NO_TOPICS;
  #farewell: { code: number; reason: string } | undefined;
  /** Its handler takes nothing more; it has sent more frames than it may. */
  #isPaused = false;
  #isHeld = false;
  #frames = 0;
  #credit: number;
  #counted_at: number;

  constructor(raw: Raw, sockets: Sockets) {
    this.#raw = raw;
    this.#sockets = sockets;
    this.#credit = BURST_FRAMES * this.#factor;
    this.#counted_at = sockets.clock.monotonic();
  }

  /** Sends one frame. False when the socket is closed or was closed now because its reader is too slow. */
  send(data: string | Uint8Array, compress = false): boolean {
    if (this.closing || this.checkSpeed()) return false;
    const result = typeof data === "string" ? this.#raw.sendText(data, compress) : this.#raw.sendBinary(data, compress);
    if (result === 0 || this.waiting > CUT_BYTES) this.cut();
    return !this.closing;
  }

  /** For byte streams, which wait on their own: Bun's own answer (-1 the socket is full, a `drain` follows; 0 dropped). */
  transmit(data: string | Uint8Array): number {
    if (this.closing) return 0;
    return typeof data === "string" ? this.#raw.sendText(data, false) : this.#raw.sendBinary(data, false);
  }

  /** Takes nothing more from the client until `resume`: what it sends waits on its side. Messages that are read already still come. */
  pause(): void {
    this.#isPaused = true;
    this.#raw.pause();
  }

  resume(): void {
    this.#isPaused = false;
    if (!this.#isHeld) this.#raw.resume();
  }

  /** Counts a frame of the client's, pings too: each takes its time from everyone else. A client that sends too many is not read for a while. */
  received(): void {
    this.#frames += 1;
    if (this.#frames < LOOK_EVERY_FRAMES || this.#isHeld) return;
    const { clock } = this.#sockets;
    const now = clock.monotonic();
    const rate = (FRAMES_PER_SECOND * this.#factor) / 1_000;
    const gained = (now - this.#counted_at) * rate;
    this.#credit = Math.min(this.#credit + gained, BURST_FRAMES * this.#factor) - this.#frames;
    this.#frames = 0;
    this.#counted_at = now;
    if (this.#credit >= 0) return;
    this.#isHeld = true;
    this.#raw.pause();
    clock.after(-this.#credit / rate, () => {
      this.#isHeld = false;
      if (!this.#isPaused && !this.closing) this.#raw.resume();
    });
  }

  get #factor(): number {
    return this.#raw.data.agent ? AGENT_FACTOR : 1;
  }

  /** Frames published to this topic reach the socket until it closes. */
  follow(topic: string): void {
    this.#raw.subscribe(topic);
    this.#sockets.joined(topic, this);
  }

  /** Follows nothing any more; answers what it has followed. */
  unfollow(): readonly string[] {
    const topics = this.#sockets.left(this);
    for (const topic of topics) this.#raw.unsubscribe(topic);
    return topics;
  }

  /** Of which part it is; undefined where nobody has said. */
  get place(): Place | undefined {
    return this.#raw.data.place;
  }

  /** Bytes that wait for the reader. */
  get waiting(): number {
    return this.#raw.getBufferedAmount();
  }

  /** Closes a reader that has fallen behind; true when it did. */
  checkSpeed(): boolean {
    if (this.waiting <= SLOW_BYTES) return false;
    this.closeSlow();
    return true;
  }

  /** Sends nothing more to a reader that has fallen behind. It reads what waits, then why, whenever it reads again. */
  closeSlow(): void {
    if (!this.closing) this.#sockets.slowCloses += 1;
    this.#sayLater(CLOSE.tryLater, "reader too slow, resume from the last id seen");
  }

  /** The socket took what waited: time for the farewell that was held back. */
  drained(): void {
    if (this.#farewell && this.waiting === 0) this.#end(this.#farewell.code, this.#farewell.reason);
  }

  /** Says goodbye; a reader that does not listen is cut a little later. */
  close(code: number, reason: string): void {
    if (this.closing) return;
    this.closing = true;
    this.#sockets.left(this);
    this.#end(code, reason);
  }

  /** Ends the connection at once. */
  cut(): void {
    this.closing = true;
    this.#raw.terminate();
  }

  // Bun gives a closed socket only some seconds to send what waits, so the close frame of a stalled reader comes after that.
  #sayLater(code: number, reason: string): void {
    if (this.closing) return;
    this.closing = true;
    this.unfollow();
    this.#farewell = { code, reason };
    this.#sockets.farewell(this);
    this.#sockets.clock.after(FAREWELL_MS, () => this.cut());
    this.drained();
  }

  #end(code: number, reason: string): void {
    this.#farewell = undefined;
    // The client's own farewell has to be read.
    this.#raw.resume();
    this.#raw.close(code, reason.slice(0, 120));
    this.#sockets.clock.after(CUT_AFTER_MS, () => this.cut());
  }

  ping(): void {
    if (!this.closing) this.#raw.ping();
  }
}

/** All open sockets of the server, and the topics they follow. */
export class Sockets {
  readonly clock: Clock;
  readonly #open: PingTimer<Socket>;
  readonly #followers = new Map<string, Followed>();
  readonly #leaving = new Set<Socket>();
  readonly #holders: Holders;
  readonly #places = new WeakMap<Request, Place>();
  readonly #parts: Pick<Parts, "has">;
  #server: Server<Data> | undefined;
  /** Readers that were told to go because they were too slow, since the start. */
  slowCloses = 0;
  /** Open connections of agents. */
  agents = 0;

  /**
   * `limit` sockets may be open at once, three quarters of them by one caller; more are answered 503. `parts`: those of this node.
   * `maxAppMessage`: bytes of the longest message of an app.
   */
  constructor(
    clock: Clock,
    limit = 20_000,
    parts: Pick<Parts, "has"> = ALL_PARTS,
    maxAppMessage = MAX_APP_MESSAGE_BYTES,
  ) {
    this.clock = clock;
    const longest = Math.max(maxAppMessage, MAX_MESSAGE_BYTES);
    this.websocket.maxPayloadLength = longest;
    // A whole message, and what waited before it.
    this.websocket.backpressureLimit = longest + CUT_BYTES;
    this.#parts = parts;
    this.#open = new PingTimer(clock);
    this.#holders = new Holders(limit);
  }

  attach(server: Server<Data>): void {
    this.#server = server;
  }

  /** Of which part the request is, whose socket ends here when that part leaves this node. */
  belongs(request: Request, place: Place): void {
    this.#places.set(request, place);
  }

  /** Turns this request into a WebSocket. Throws 400 when it is not an upgrade, 503 when too many are open. The answer is never sent. */
  upgrade(
    request: Request,
    handler: SocketHandler,
    { headers = {}, who, agent, app, compressed = false }: UpgradeOptions = {},
  ): Response {
    if (request.headers.get("upgrade")?.toLowerCase() !== "websocket") {
      throw new AppError("invalid", "This endpoint is a WebSocket: send an upgrade request.");
    }
    this.#holders.check(who);
    // Bun negotiates by what stands here.
    if (!compressed) request.headers.delete("sec-websocket-extensions");
    if (
      !this.#server?.upgrade(request, { data: { handler, who, agent, app, place: this.#places.get(request) }, headers })
    ) {
      throw new AppError("invalid", "The WebSocket handshake is invalid.");
    }
    return new Response(null);
  }

  /** Sends one frame to every socket that follows the topic; readers that have fallen behind are closed. */
  publish(topic: string, frame: string, compress = false): void {
    const followers = this.#followers.get(topic);
    if (!followers) return;
    followers.unlooked += frame.length;
    if (followers.unlooked > LOOK_EVERY) {
      followers.unlooked = 0;
      for (const socket of followers.sockets) socket.checkSpeed();
    }
    this.#server?.publish(topic, frame, compress);
  }

  /** How many sockets follow the topic: with none a publisher skips the work of making the frame. */
  followersOf(topic: string): number {
    return this.#followers.get(topic)?.sockets.size ?? 0;
  }

  joined(topic: string, socket: Socket): void {
    let followers = this.#followers.get(topic);
    if (!followers) {
      followers = { alone: [topic], sockets: new Set(), unlooked: 0 };
      this.#followers.set(topic, followers);
    }
    followers.sockets.add(socket);
    // Most follow one topic, and share its list.
    socket.topics = socket.topics.length === 0 ? followers.alone : [...socket.topics, topic];
  }

  /** Takes the socket out of the topics it follows and answers which they were. */
  left(socket: Socket): readonly string[] {
    const { topics } = socket;
    for (const topic of topics) {
      const followers = this.#followers.get(topic);
      followers?.sockets.delete(socket);
      if (followers?.sockets.size === 0) this.#followers.delete(topic);
    }
    socket.topics = NO_TOPICS;
    return topics;
  }

  /** Remembers a slow reader that was told to go; when too much waits for all of them, the first are cut. */
  farewell(socket: Socket): void {
    this.#leaving.add(socket);
    let bytes = 0;
    for (const one of this.#leaving) bytes += one.waiting;
    for (const one of this.#leaving) {
      if (bytes <= FAREWELL_BYTES) return;
      bytes -= one.waiting;
      one.cut();
    }
  }

  /** How many sockets follow a topic, counted once for each. */
  get followers(): number {
    let count = 0;
    for (const { sockets } of this.#followers.values()) count += sockets.size;
    return count;
  }

  /** How many sockets are open, and how many topics are followed. */
  get counts(): { open: number; topics: number } {
    return { open: this.#open.size, topics: this.#followers.size };
  }

  /** Tells every client that the server goes away (1001). */
  closeAll(reason: string): void {
    for (const socket of this.#open.all()) socket.close(CLOSE.goingAway, reason);
  }

  /** Other nodes go on with these parts (1001): who comes again finds them. A socket of which no part is known ends, too. */
  closeParts(isLeaving: (part: number) => boolean): void {
    for (const socket of this.#open.all()) {
      const { place } = socket;
      if (place === undefined || (typeof place === "number" && isLeaving(place)))
        socket.close(CLOSE.goingAway, GOES_ON);
    }
  }

  /** What Bun.serve needs: everything is passed on to the handler of the socket's route. */
  readonly websocket = {
    maxPayloadLength: 0,
    backpressureLimit: 0,
    closeOnBackpressureLimit: true,
    idleTimeout: 120,
    sendPings: true,
    perMessageDeflate: true,
    open: (raw: Raw): void => {
      const socket = new Socket(raw, this);
      raw.data.socket = socket;
      this.#open.add(socket);
      this.#holders.count(raw.data.who, 1);
      if (raw.data.agent) this.agents += 1;
      raw.data.handler.open?.(socket);
      // Its request may have been under way while the part left: nothing would come on it any more.
      const { place } = raw.data;
      if (typeof place === "number" && !this.#parts.has(place)) socket.close(CLOSE.goingAway, GOES_ON);
    },
    message: (raw: Raw, data: string | Buffer): void => {
      const { socket, app, handler } = raw.data;
      if (!socket || socket.closing) return;
      socket.received();
      if (!app && data.length > MAX_MESSAGE_BYTES) socket.close(CLOSE.tooBig, "the message is too large");
      else handler.message?.(socket, data);
    },
    ping: (raw: Raw): void => raw.data.socket?.received(),
    pong: (raw: Raw): void => raw.data.socket?.received(),
    drain: (raw: Raw): void => {
      const { socket } = raw.data;
      if (!socket) return;
      socket.drained();
      if (!socket.closing) raw.data.handler.drain?.(socket);
    },
    close: (raw: Raw, code: number, reason: string): void => {
      const { socket } = raw.data;
      if (!socket) return;
      socket.closing = true;
      this.left(socket);
      this.#leaving.delete(socket);
      if (this.#open.delete(socket)) {
        this.#holders.count(raw.data.who, -1);
        if (raw.data.agent) this.agents -= 1;
      }
      raw.data.handler.close?.(socket, code, reason);
    },
  };
}
