// A yamux session, for either side: many streams over one connection, each with its own window, so that a stalled stream never stalls
// another. The agent is the client, and the server the server; both may open streams. The session ends with a reason when the peer violates
// the protocol, stops answering pings or does not acknowledge streams. [WI-4] .. [WI-10]
import type { Clock, Timer } from "#base/clock.ts";
import type { ByteStream } from "./byte-stream.ts";
import { Keepalive } from "./keepalive.ts";
import { Wakeup } from "./wakeup.ts";
import { toWireError, WireError } from "./wire-error.ts";
import { encodeHeader, FLAG, FRAME, type FrameHeader, FrameParser, GO_AWAY } from "./yamux-frame.ts";
import { CROWDED_WINDOW, type StreamHost, YamuxStream } from "./yamux-stream.ts";

/** The connection of a session, such as a `ByteStream`. */
export type Transport = Pick<ByteStream, "read" | "write" | "send" | "close">;

export interface YamuxOptions {
  role: "client" | "server";
  clock: Clock;
  /**
   * Maximum number of open streams, opened by either side. Default 512. Each stream may hold 256 KiB of unread bytes, and 512 KiB once its
   * reader has kept up for a while.
   */
  max_streams?: number;
  /**
   * Maximum number of unread bytes of all streams together. Default 64 MiB. Above a quarter of it, windows shrink to 64 KiB. Beyond it, the
   * stream with the most unread bytes is reset.
   */
  max_unread?: number;
  /**
   * Maximum number of the peer's streams that have not been accepted yet. Further ones are reset. Also the maximum number of this side's
   * streams that the peer has not acknowledged. Default 256.
   */
  accept_backlog?: number;
  /** Milliseconds between the pings of this side, 0 for none. Default 30 s. */
  ping_interval_ms?: number;
  /** Timeout of a ping in milliseconds, after which the session is dead. Default 10 s. */
  ping_timeout_ms?: number;
  /** Timeout of a stream's acknowledgment in milliseconds. Default 75 s. */
  open_timeout_ms?: number;
  /** Milliseconds of silence after which a half-closed stream is reset. Default 5 min. */
  half_closed_ms?: number;
  /** Called for each answered ping, with its round trip in milliseconds. */
  alive?(round_trip_ms: number): void;
}

/** Headers and payloads of one message that are handled in one turn of the event loop. */
const STEPS_PER_TURN = 512;

export class YamuxSession {
  /** Settles when the session has ended: undefined after a clean end, otherwise the reason. Never rejects. */
  readonly closed: Promise<WireError | undefined>;
  readonly #transport: Transport;
  readonly #options: Required<Omit<YamuxOptions, "alive">>;
  readonly #keepalive: Keepalive;
  readonly #settled = Promise.withResolvers<WireError | undefined>();
  readonly #streams = new Map<number, YamuxStream>();
  readonly #unacknowledged = new Map<number, Timer>();
  readonly #host: StreamHost;
  readonly #backlogChanged = new Wakeup();
  /** Wakes openers that wait because too many streams are unacknowledged. */
  readonly #acknowledged = new Wakeup();
  #backlog: YamuxStream[] = [];
  #nextId: number;
  #current: YamuxStream | undefined;
  /** Whether the current data frame has the FIN flag, so that the peer's side ends after its payload. */
  #endsWithPayload = false;
  #isGoingAway = false;
  #isPeerGoingAway = false;
  #failure: WireError | undefined;

  constructor(transport: Transport, options: YamuxOptions) {
    this.#transport = transport;
    this.#options = {
      max_streams: 512,
      max_unread: 64 * 1024 * 1024,
      accept_backlog: 256,
      ping_interval_ms: 30_000,
      ping_timeout_ms: 10_000,
      open_timeout_ms: 75_000,
      half_closed_ms: 300_000,
      ...options,
    };
    this.#nextId = options.role === "client" ? 1 : 2;
    this.closed = this.#settled.promise;
    this.#host = {
      sendWindow: (streamId, flags, increment) => this.#sendWindow(streamId, flags, increment),
      sendData: (streamId, payload) =>
        this.#transport.write(encodeHeader(FRAME.data, 0, streamId, payload.byteLength), payload),
      release: (stream) => this.#release(stream),
      startHalfClosedTimer: (giveUp) => this.#options.clock.after(this.#options.half_closed_ms, giveUp),
      writers: 0,
      unread: 0,
      isCrowded: () => this.#host.unread > this.#options.max_unread / 4,
      limitUnread: (arrived) => this.#limitUnread(arrived),
    };
    this.#keepalive = new Keepalive({
      clock: options.clock,
      interval_ms: this.#options.ping_interval_ms,
      timeout_ms: this.#options.ping_timeout_ms,
      send: (value) => this.#transport.send(encodeHeader(FRAME.ping, FLAG.syn, 0, value)),
      onDead: () => this.#stop(new WireError("timeout", "The peer does not answer."), GO_AWAY.internal_error),
      alive: options.alive,
    });
    void this.#run();
  }

  /** Number of open streams. */
  get streams(): number {
    return this.#streams.size;
  }

  /**
   * Opens a stream; bytes may be written immediately. Waits while too many streams of this side are unacknowledged. Throws WireError
   * `refused` at the limit of streams or when either side is going away, and the session's error after its end.
   */
  async open(): Promise<YamuxStream> {
    while (!this.#failure && this.#unacknowledged.size >= this.#options.accept_backlog) await this.#acknowledged.wait();
    if (this.#failure) throw this.#failure;
    if (this.#isGoingAway || this.#isPeerGoingAway)
      throw new WireError("refused", "The session takes no more streams.");
    if (this.#streams.size >= this.#options.max_streams) throw new WireError("refused", "Too many streams.");
    const id = this.#nextId;
    this.#nextId += 2;
    const stream = this.#add(id);
    const onOpenTimeout = (): void =>
      this.#stop(new WireError("timeout", "The peer does not acknowledge streams."), GO_AWAY.internal_error);
    this.#unacknowledged.set(id, this.#options.clock.after(this.#options.open_timeout_ms, onOpenTimeout));
    this.#sendWindow(id, FLAG.syn, 0);
    return stream;
  }

  /** Returns the next stream that the peer opens; undefined when the session has ended. */
  async accept(): Promise<YamuxStream | undefined> {
    for (;;) {
      if (this.#failure) return undefined;
      const stream = this.#backlog.shift();
      if (stream) {
        this.#sendWindow(stream.id, FLAG.ack, 0);
        return stream;
      }
      await this.#backlogChanged.wait();
    }
  }

  /** Sends a ping and returns its round trip in milliseconds; undefined if the session ends first. A missing answer ends the session. */
  ping(): Promise<number | undefined> {
    return this.#failure ? Promise.resolve(undefined) : this.#keepalive.ping();
  }

  /** Tells the peer to open no more streams; open ones continue. */
  sendGoAway(): void {
    if (this.#isGoingAway || this.#failure) return;
    this.#isGoingAway = true;
    this.#transport.send(encodeHeader(FRAME.go_away, 0, 0, GO_AWAY.normal));
  }

  /** Ends the session and all streams now. */
  close(reason = "The session was closed."): void {
    this.sendGoAway();
    this.#stop(undefined, undefined, reason);
  }

  async #run(): Promise<void> {
    const parser = new FrameParser({
      header: (header) => this.#onHeader(header),
      payload: (piece, isLast) => this.#onPayload(piece, isLast),
    });
    try {
      for (;;) {
        const chunk = await this.#transport.read();
        if (this.#failure) return;
        if (chunk === undefined) break;
        for (let at = 0; ; ) {
          at = parser.push(chunk, at, STEPS_PER_TURN);
          if (at === chunk.byteLength) break;
          // A chunk can have hundreds of thousands of frames, so other work gets a turn.
          await new Promise((resolve) => setImmediate(resolve));
          if (this.#failure) return;
        }
      }
      this.#stop(parser.isInsideFrame ? new WireError("closed", "The connection was cut inside a frame.") : undefined);
    } catch (error) {
      const failure = toWireError(error);
      this.#stop(failure, failure.failure === "protocol" ? GO_AWAY.protocol_error : undefined);
    }
  }

  #onHeader(header: FrameHeader): void {
    const { type, flags, length } = header;
    if (type === FRAME.ping) {
      if (flags & FLAG.syn) this.#transport.send(encodeHeader(FRAME.ping, FLAG.ack, 0, length));
      else this.#keepalive.onPong(length);
    } else if (type === FRAME.go_away) {
      this.#isPeerGoingAway = true;
      if (length !== GO_AWAY.normal) throw new WireError("closed", `The peer gave up on the session: code ${length}.`);
    } else {
      this.#onStreamHeader(header);
    }
  }

  #onStreamHeader({ type, flags, stream_id, length }: FrameHeader): void {
    if (flags & FLAG.syn) this.#onOpen(stream_id);
    const stream = this.#streams.get(stream_id);
    this.#current = stream;
    this.#endsWithPayload = false;
    // Frames for closed or refused streams may still arrive after the ID was released. They are skipped.
    if (!stream) return;
    if (flags & FLAG.ack) this.#onAcknowledged(stream_id);
    if (flags & FLAG.rst) {
      stream.fail(new WireError("reset", "The peer reset the stream."));
      return;
    }
    if (type === FRAME.window) stream.addSendWindow(length);
    else stream.expectData(length);
    if ((flags & FLAG.fin) === 0) return;
    if (type === FRAME.data && length > 0) this.#endsWithPayload = true;
    else stream.onPeerEnd();
  }

  #onPayload(piece: Uint8Array, isLast: boolean): void {
    this.#current?.receive(piece);
    if (isLast && this.#endsWithPayload) this.#current?.onPeerEnd();
  }

  #onOpen(id: number): void {
    const peerParity = this.#options.role === "client" ? 0 : 1;
    if (id === 0 || id % 2 !== peerParity) throw new WireError("protocol", "A stream id of the wrong side.");
    if (this.#streams.has(id)) throw new WireError("protocol", "A stream was opened twice.");
    const isFull =
      this.#streams.size >= this.#options.max_streams || this.#backlog.length >= this.#options.accept_backlog;
    if (this.#isGoingAway || isFull) {
      this.#sendWindow(id, FLAG.rst, 0);
      return;
    }
    this.#backlog.push(this.#add(id));
    this.#backlogChanged.wake();
  }

  #add(id: number): YamuxStream {
    const stream = new YamuxStream(id, this.#host);
    this.#streams.set(id, stream);
    return stream;
  }

  #release(stream: YamuxStream): void {
    this.#streams.delete(stream.id);
    this.#onAcknowledged(stream.id);
    const index = this.#backlog.indexOf(stream);
    if (index >= 0) this.#backlog.splice(index, 1);
  }

  #limitUnread(arrived: YamuxStream): void {
    if (this.#host.unread <= this.#options.max_unread) return;
    // Streams that have ended hold bytes too, but cannot be reset.
    let fullest = arrived;
    for (const stream of this.#streams.values()) if (stream.unread > fullest.unread) fullest = stream;
    // Most bytes belong to ended streams: resetting an open stream with few unread bytes would not help.
    if (fullest.unread <= CROWDED_WINDOW) return;
    fullest.reset("The connection holds too many bytes that were not read.");
  }

  #onAcknowledged(id: number): void {
    this.#unacknowledged.get(id)?.cancel();
    if (this.#unacknowledged.delete(id)) this.#acknowledged.wake();
  }

  #sendWindow(streamId: number, flags: number, increment: number): void {
    this.#transport.send(encodeHeader(FRAME.window, flags, streamId, increment));
  }

  /** Ends the session and its streams, once. `code` is sent to the peer; `reason` goes into the socket's close frame. */
  #stop(failure: WireError | undefined, code?: number, reason = failure?.message ?? ""): void {
    if (this.#failure) return;
    this.#failure = failure ?? new WireError("closed", "The session is over.");
    this.#keepalive.stop();
    if (code !== undefined) this.#transport.send(encodeHeader(FRAME.go_away, 0, 0, code));
    const streams = [...this.#streams.values()];
    for (const stream of streams) stream.fail(this.#failure);
    for (const timer of this.#unacknowledged.values()) timer.cancel();
    this.#unacknowledged.clear();
    this.#backlog = [];
    this.#transport.close(failure?.failure === "protocol" ? 1002 : 1000, reason);
    this.#backlogChanged.wake();
    this.#acknowledged.wake();
    this.#settled.resolve(failure);
  }
}
