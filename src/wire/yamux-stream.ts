// One stream of a yamux session: its windows in both directions, its unread bytes, and the ends of both sides. Created only by the session;
// all other code uses it as a `Duplex`. Rejects payload beyond the granted window. [WI-5] [WI-6] [WI-7]
import type { Timer } from "#base/clock.ts";
import { ChunkQueue } from "./chunk-queue.ts";
import { type Duplex, readChunks } from "./duplex.ts";
import { Wakeup } from "./wakeup.ts";
import { WireError } from "./wire-error.ts";
import { FLAG, INITIAL_WINDOW } from "./yamux-frame.ts";

/**
 * Larger writes are split, so that streams share the connection fairly. A stream that writes alone uses frames of four times the size,
 * which saves a fifth of the CPU time on both sides (2.3 s per GiB instead of 2.9 for server and daemon together).
 */
const MAX_PAYLOAD_BYTES = 64 * 1024;
const MAX_PAYLOAD_BYTES_ALONE = 256 * 1024;
/** When a reader has read this much and nothing is unread, its window is doubled, because the window is what limits the peer's speed. */
const WINDOW_GROWTH_BYTES = 1024 * 1024;
const GROWN_WINDOW = 2 * INITIAL_WINDOW;
/** The window of each stream while the session holds many unread bytes. Windows shrink to it because updates are withheld. */
export const CROWDED_WINDOW = INITIAL_WINDOW / 4;
const MAX_WINDOW = 0xffff_ffff;

/** The session's interface for its streams. */
export interface StreamHost {
  /** Sends a window-update frame: `increment` for the peer, plus flags. Never waits. */
  sendWindow(streamId: number, flags: number, increment: number): void;
  /** Sends a data frame; resolves when the connection has accepted it. */
  sendData(streamId: number, payload: Uint8Array): Promise<void>;
  /** Called when both sides have ended, so that the ID is not used any more. */
  release(stream: YamuxStream): void;
  /** Number of the session's streams with a write in progress. */
  writers: number;
  /** Unread bytes of all streams of the session. */
  unread: number;
  /** Returns true while there are so many unread bytes that windows have to shrink. */
  isCrowded(): boolean;
  /** Called after bytes have arrived. Resets the stream with the most unread bytes if the session holds too many. */
  limitUnread(arrived: YamuxStream): void;
  /** Starts the timeout for a peer that never ends its side. */
  startHalfClosedTimer(giveUp: () => void): Timer;
}

/** Subtracts the unread bytes of an ended stream from the session's count when the stream is garbage-collected. */
const unreadAtEnd = new FinalizationRegistry<{ readonly host: StreamHost; bytes: number }>((left) => {
  left.host.unread -= left.bytes;
});

export class YamuxStream implements Duplex {
  readonly id: number;
  readonly closed: Promise<WireError | undefined>;
  readonly #host: StreamHost;
  readonly #settled = Promise.withResolvers<WireError | undefined>();
  readonly #received = new ChunkQueue();
  readonly #readable = new Wakeup();
  readonly #granted = new Wakeup();
  /** Bytes that the peer may still send. */
  #receiveWindow = INITIAL_WINDOW;
  /** Bytes that were read since the last window update. */
  #consumed = 0;
  #readBytes = 0;
  /** The size of the receive window after an update. */
  #window = INITIAL_WINDOW;
  #sendWindow = INITIAL_WINDOW;
  #writing: Promise<void> = Promise.resolve();
  #endPromise: Promise<void> | undefined;
  #hasSentFin = false;
  #hasReceivedFin = false;
  #failure: WireError | undefined;
  #halfClosedTimer: Timer | undefined;
  /** Unread bytes of a stream that has ended, for `unreadAtEnd`. */
  #left: { readonly host: StreamHost; bytes: number } | undefined;

  constructor(id: number, host: StreamHost) {
    this.id = id;
    this.#host = host;
    this.closed = this.#settled.promise;
  }

  async read(): Promise<Uint8Array | undefined> {
    for (;;) {
      const chunk = this.#received.shift();
      if (chunk) {
        this.#countUnread(-chunk.byteLength);
        this.#grantWindow(chunk.byteLength);
        return chunk;
      }
      if (this.#hasReceivedFin) return undefined;
      if (this.#failure) throw this.#failure;
      await this.#readable.wait();
    }
  }

  write(bytes: Uint8Array): Promise<void> {
    if (this.#endPromise) return Promise.reject(new WireError("closed", "Our side of the stream has ended."));
    const written = this.#writing.then(() => this.#trackWrite(bytes));
    this.#writing = written.catch(() => {});
    return written;
  }

  end(): Promise<void> {
    this.#endPromise ??= this.#writing.then(() => this.#sendFin());
    return this.#endPromise;
  }

  reset(reason = "The stream was reset."): void {
    if (this.#isOver) {
      // The stream has ended: its unread bytes are dropped.
      this.#countUnread(-this.#received.unread);
      this.#received.clear();
      return;
    }
    this.#host.sendWindow(this.id, FLAG.rst, 0);
    this.fail(new WireError("reset", reason));
  }

  [Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    return readChunks(this);
  }

  /** Called by the session when a data frame of this size starts. Throws WireError `protocol` if it is not allowed. */
  expectData(length: number): void {
    if (length === 0) return;
    if (this.#hasReceivedFin) throw new WireError("protocol", "Data after the end of a stream.");
    if (length > this.#receiveWindow) throw new WireError("protocol", "More data than the window allows.");
    this.#receiveWindow -= length;
  }

  /** Called by the session with a piece of the payload announced to `expectData`. */
  receive(piece: Uint8Array): void {
    if (this.#isOver) return;
    this.#received.push(piece);
    this.#countUnread(piece.byteLength);
    this.#readable.wake();
    if (this.#halfClosedTimer) this.#startHalfClosedTimer();
    this.#host.limitUnread(this);
  }

  /** Number of bytes that were received and not read. */
  get unread(): number {
    return this.#received.unread;
  }

  /** Called by the session when the peer grants more window. Throws WireError `protocol` beyond 32 bits. */
  addSendWindow(increment: number): void {
    this.#sendWindow += increment;
    if (this.#sendWindow > MAX_WINDOW) throw new WireError("protocol", "A window beyond 32 bits.");
    if (increment > 0) this.#granted.wake();
  }

  /** Called by the session when the peer has ended its side. */
  onPeerEnd(): void {
    if (this.#hasReceivedFin || this.#isOver) return;
    this.#hasReceivedFin = true;
    this.#readable.wake();
    this.#settleIfOver();
  }

  /** Called by the session when the stream breaks. A reset drops unread bytes; after a lost connection they can still be read. */
  fail(failure: WireError): void {
    if (this.#isOver) return;
    this.#failure = failure;
    if (failure.failure === "reset") {
      this.#countUnread(-this.#received.unread);
      this.#received.clear();
      this.#hasReceivedFin = false;
    }
    this.#readable.wake();
    this.#granted.wake();
    this.#settle(failure);
  }

  get #isOver(): boolean {
    return this.#failure !== undefined || (this.#hasSentFin && this.#hasReceivedFin);
  }

  // Window updates are sent at half a window, as in other yamux implementations: often enough that a reader never starves, and rarely
  // enough to be cheap.
  #grantWindow(bytes: number): void {
    this.#consumed += bytes;
    this.#readBytes += bytes;
    if (this.#hasReceivedFin || this.#isOver) return;
    const isCrowded = this.#host.isCrowded();
    const window = isCrowded ? CROWDED_WINDOW : this.#window;
    const withheld = this.#window - window;
    if (this.#consumed - withheld < window / 2) return;
    const hasKeptUp = this.#readBytes >= WINDOW_GROWTH_BYTES && this.#received.unread === 0;
    if (hasKeptUp && this.#window < GROWN_WINDOW && !isCrowded) {
      this.#consumed += GROWN_WINDOW - this.#window;
      this.#window = GROWN_WINDOW;
    }
    const increment = this.#consumed - withheld;
    this.#receiveWindow += increment;
    this.#consumed = withheld;
    this.#host.sendWindow(this.id, 0, increment);
  }

  #countUnread(bytes: number): void {
    this.#host.unread += bytes;
    if (this.#left) this.#left.bytes += bytes;
  }

  async #trackWrite(bytes: Uint8Array): Promise<void> {
    this.#host.writers += 1;
    try {
      await this.#writeFrames(bytes);
    } finally {
      this.#host.writers -= 1;
    }
  }

  async #writeFrames(bytes: Uint8Array): Promise<void> {
    let at = 0;
    while (at < bytes.byteLength) {
      if (this.#failure) throw this.#failure;
      if (this.#sendWindow === 0) {
        await this.#granted.wait();
        continue;
      }
      const maxPayload = this.#host.writers > 1 ? MAX_PAYLOAD_BYTES : MAX_PAYLOAD_BYTES_ALONE;
      const end = at + Math.min(bytes.byteLength - at, this.#sendWindow, maxPayload);
      this.#sendWindow -= end - at;
      await this.#host.sendData(this.id, bytes.subarray(at, end));
      at = end;
    }
    if (this.#failure) throw this.#failure;
  }

  #sendFin(): void {
    if (this.#failure) return;
    this.#hasSentFin = true;
    this.#host.sendWindow(this.id, FLAG.fin, 0);
    if (!this.#hasReceivedFin) this.#startHalfClosedTimer();
    this.#settleIfOver();
  }

  #startHalfClosedTimer(): void {
    this.#halfClosedTimer?.cancel();
    this.#halfClosedTimer = this.#host.startHalfClosedTimer(() =>
      this.reset("The peer never ended its side of the stream."),
    );
  }

  #settleIfOver(): void {
    if (this.#isOver) this.#settle(undefined);
  }

  #settle(failure: WireError | undefined): void {
    this.#halfClosedTimer?.cancel();
    if (this.#received.unread > 0) {
      this.#left = { host: this.#host, bytes: this.#received.unread };
      unreadAtEnd.register(this, this.#left);
    }
    this.#host.release(this);
    this.#settled.resolve(failure);
  }
}
