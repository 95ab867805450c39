// One byte stream over a socket that carries messages: Bun's ServerWebSocket, a client WebSocket (websocket.ts) or an in-memory pair. The
// socket's owner calls `push`, `drain` and `end`; yamux reads and writes. Disconnects a peer that sends text messages or sends faster than
// the reader reads, and pauses writing while the socket is full. [WI-1] [WI-2] [WI-3]
import { readChunks } from "./duplex.ts";
import { Wakeup } from "./wakeup.ts";
import { WireError } from "./wire-error.ts";

export interface MessageSocket {
  /**
   * Returns Bun's result: above 0 if the bytes were sent, -1 if they were queued and the socket is full (`drain` follows), 0 if dropped.
   */
  send(bytes: Uint8Array): number;
  /** Sends the parts as one message, for sockets that build their own frames. */
  sendParts?(parts: readonly Uint8Array[]): number;
  close(code?: number, reason?: string): void;
}

export interface ByteStreamOptions {
  /** Maximum number of unread bytes before the peer is disconnected. Default 4 MiB. */
  max_unread?: number;
  /** Maximum number of bytes queued by `send` for a full socket before the peer is disconnected. Default 1 MiB. */
  max_unsent?: number;
}

type Writer = { parts: readonly Uint8Array[]; done: PromiseWithResolvers<void> };

const CLOSE_CODE = { unsupported: 1003, policy: 1008, failed: 1011 } as const;

export class ByteStream {
  /** Settles at the end of the stream: undefined after a clean end, otherwise the error. Never rejects. */
  readonly closed: Promise<WireError | undefined>;
  readonly #socket: MessageSocket;
  readonly #maxUnread: number;
  readonly #maxUnsent: number;
  readonly #settled = Promise.withResolvers<WireError | undefined>();
  readonly #readable = new Wakeup();
  #received: Uint8Array[] = [];
  #unread = 0;
  #urgent: Uint8Array[] = [];
  #unsent = 0;
  #writers: Writer[] = [];
  #isFull = false;
  #isClosed = false;
  #failure: WireError | undefined;

  constructor(socket: MessageSocket, options: ByteStreamOptions = {}) {
    this.#socket = socket;
    this.#maxUnread = options.max_unread ?? 4 * 1024 * 1024;
    this.#maxUnsent = options.max_unsent ?? 1024 * 1024;
    this.closed = this.#settled.promise;
  }

  /** Takes a received message. The stream owns its bytes from now on. */
  push(message: Uint8Array | ArrayBuffer | string): void {
    if (this.#isClosed) return;
    if (typeof message === "string") {
      this.#fail(new WireError("protocol", "Only binary messages are allowed here."), CLOSE_CODE.unsupported);
      return;
    }
    const chunk = message instanceof Uint8Array ? message : new Uint8Array(message);
    if (chunk.byteLength === 0) return;
    this.#unread += chunk.byteLength;
    if (this.#unread > this.#maxUnread) {
      this.#fail(new WireError("too_slow", "More came in than could be read."), CLOSE_CODE.policy);
      return;
    }
    this.#received.push(chunk);
    this.#readable.wake();
  }

  /** Called when the socket accepts bytes again. */
  drain(): void {
    this.#isFull = false;
    while (!this.#isBlocked && this.#urgent.length > 0) {
      const bytes = this.#urgent.shift()!;
      this.#unsent -= bytes.byteLength;
      this.#transmit(bytes);
    }
    while (!this.#isBlocked && this.#writers.length > 0) {
      const writer = this.#writers.shift()!;
      this.#transmitAll(writer.parts);
      if (this.#failure) writer.done.reject(this.#failure);
      else writer.done.resolve();
    }
  }

  /** Called when the socket has disconnected, with an error if it was not closed cleanly. Received bytes remain readable. */
  end(failure?: WireError): void {
    if (this.#isClosed) return;
    this.#stop(failure);
  }

  /** Returns the next bytes; undefined after a clean end. Throws WireError if the connection broke. */
  async read(): Promise<Uint8Array | undefined> {
    for (;;) {
      const chunk = this.#received.shift();
      if (chunk) {
        this.#unread -= chunk.byteLength;
        return chunk;
      }
      if (this.#failure) throw this.#failure;
      if (this.#isClosed) return undefined;
      await this.#readable.wait();
    }
  }

  /** Sends the parts as one message, in order; waits while the socket is full (backpressure). */
  write(...parts: readonly Uint8Array[]): Promise<void> {
    if (this.#isClosed) return Promise.reject(this.#failure ?? new WireError("closed", "The connection is closed."));
    if (this.isBackedUp) {
      const done = Promise.withResolvers<void>();
      this.#writers.push({ parts, done });
      return done.promise;
    }
    this.#transmitAll(parts);
    return this.#failure ? Promise.reject(this.#failure) : Promise.resolve();
  }

  /** True while writes have to wait; their bytes must not change until then. */
  get isBackedUp(): boolean {
    return this.#isFull || this.#writers.length > 0;
  }

  /** Sends immediately, or ahead of waiting writers once the socket drains. For small control frames; limited by `max_unsent`. */
  send(bytes: Uint8Array): void {
    if (this.#isClosed) return;
    if (!this.#isFull) {
      this.#transmit(bytes);
      return;
    }
    this.#urgent.push(bytes);
    this.#unsent += bytes.byteLength;
    if (this.#unsent > this.#maxUnsent) {
      this.#fail(new WireError("too_slow", "The peer does not read."), CLOSE_CODE.policy);
    }
  }

  /** Closes the socket cleanly. Queued bytes are dropped; bytes the socket has accepted are delivered. */
  close(code = 1000, reason = ""): void {
    if (this.#isClosed) return;
    this.#stop(undefined);
    this.#socket.close(code, truncateReason(reason));
  }

  [Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    return readChunks(this);
  }

  get #isBlocked(): boolean {
    return this.#isFull || this.#isClosed;
  }

  #transmitAll(parts: readonly Uint8Array[]): void {
    if (this.#socket.sendParts) this.#onSendResult(this.#socket.sendParts(parts));
    else this.#transmit(join(parts));
  }

  #transmit(bytes: Uint8Array): void {
    this.#onSendResult(this.#socket.send(bytes));
  }

  #onSendResult(result: number): void {
    if (result < 0) this.#isFull = true;
    else if (result === 0) this.#fail(new WireError("closed", "The socket dropped a message."), CLOSE_CODE.failed);
  }

  #fail(failure: WireError, code: number): void {
    this.#received = [];
    this.#unread = 0;
    this.#stop(failure);
    this.#socket.close(code, truncateReason(failure.message));
  }

  #stop(failure: WireError | undefined): void {
    this.#isClosed = true;
    this.#failure = failure;
    this.#urgent = [];
    const writers = this.#writers;
    this.#writers = [];
    for (const writer of writers) writer.done.reject(failure ?? new WireError("closed", "The connection is closed."));
    this.#readable.wake();
    this.#settled.resolve(failure);
  }
}

/** Converts a socket's close code and reason to the argument of `end`: undefined for the clean codes 1000 and 1001, otherwise an error. */
export const toCloseError = (code: number, reason: string): WireError | undefined =>
  code === 1000 || code === 1001
    ? undefined
    : new WireError("closed", `The connection was closed: ${code} ${reason}`.trimEnd());

const join = (parts: readonly Uint8Array[]): Uint8Array => {
  const [first, second] = parts;
  if (second === undefined) return first ?? new Uint8Array(0);
  let size = 0;
  for (const part of parts) size += part.byteLength;
  const whole = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.byteLength;
  }
  return whole;
};

// A close frame has space for 123 bytes of reason (RFC 6455, 5.5). Our reasons are ASCII.
const truncateReason = (reason: string): string => reason.slice(0, 123);
