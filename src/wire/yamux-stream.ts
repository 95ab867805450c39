// One stream of a yamux session: its two windows, its unread bytes, its two ends. Made by the session only; used as a
// `Duplex` by everyone else. Refuses payload beyond the window it granted. [WI-5] [WI-6] [WI-7]
import type { Timer } from "#base/clock.ts";
import { ChunkQueue } from "./chunk-queue.ts";
import { type Duplex, readChunks } from "./duplex.ts";
import { Wakeup } from "./wakeup.ts";
import { WireError } from "./wire-error.ts";
import { FLAG, INITIAL_WINDOW } from "./yamux-frame.ts";

/** Larger writes are cut, so that streams take turns on the connection; one that writes alone may take longer turns: a frame four times as
 * long saves a fifth of the processor on both sides (2.3 s per GiB instead of 2.9 for server and daemon together). */
const MAX_PAYLOAD = 64 * 1024;
const MAX_ALONE = 256 * 1024;
/** A reader that has taken so much, and has nothing waiting, gets twice the window: it is the window that holds the peer back. */
const GROWS_AFTER = 1024 * 1024;
const GROWN_WINDOW = 2 * INITIAL_WINDOW;
const MAX_WINDOW = 0xffff_ffff;

/** What a stream needs of its session. */
export interface StreamHost {
  /** A window-update frame: `increment` for the peer, plus flags. Never waits. */
  sendWindow(streamId: number, flags: number, increment: number): void;
  /** A data frame; resolves when the connection has taken it. */
  sendData(streamId: number, payload: Uint8Array): Promise<void>;
  /** Both sides are over: the id may be forgotten. */
  forget(stream: YamuxStream): void;
  /** Streams of the session that are in the middle of a write. */
  writers: number;
  /** Starts the timer that gives up on a peer which never ends its half. */
  whenHalfClosed(giveUp: () => void): Timer;
}

export class YamuxStream implements Duplex {
  readonly id: number;
  readonly closed: Promise<WireError | undefined>;
  readonly #host: StreamHost;
  readonly #settled = Promise.withResolvers<WireError | undefined>();
  readonly #received = new ChunkQueue();
  readonly #readable = new Wakeup();
  readonly #granted = new Wakeup();
  /** Bytes the peer may still send, and bytes read since the last window update. */
  #receiveWindow = INITIAL_WINDOW;
  #consumed = 0;
  #taken = 0;
  #window = INITIAL_WINDOW;
  #sendWindow = INITIAL_WINDOW;
  #writing: Promise<void> = Promise.resolve();
  #ending: Promise<void> | undefined;
  #finSent = false;
  #finReceived = false;
  #failure: WireError | undefined;
  #halfClosed: Timer | undefined;

  constructor(id: number, host: StreamHost) {
    this.id = id;
    this.#host = host;
    this.closed = this.#settled.promise;
  }

  async read(): Promise<Uint8Array | undefined> {
    for (;;) {
      const chunk = this.#received.take();
      if (chunk) {
        this.#credit(chunk.byteLength);
        return chunk;
      }
      if (this.#finReceived) return undefined;
      if (this.#failure) throw this.#failure;
      await this.#readable.wait();
    }
  }

  write(bytes: Uint8Array): Promise<void> {
    if (this.#ending) return Promise.reject(new WireError("closed", "Our side of the stream has ended."));
    const written = this.#writing.then(() => this.#writeAll(bytes));
    this.#writing = written.catch(() => {});
    return written;
  }

  end(): Promise<void> {
    this.#ending ??= this.#writing.then(() => this.#sendFin());
    return this.#ending;
  }

  reset(reason = "The stream was reset."): void {
    if (this.#over) return;
    this.#host.sendWindow(this.id, FLAG.rst, 0);
    this.fail(new WireError("reset", reason));
  }

  [Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    return readChunks(this);
  }

  /** Session: a data frame of this size begins. Throws WireError `protocol` when it may not. */
  expect(length: number): void {
    if (length === 0) return;
    if (this.#finReceived) throw new WireError("protocol", "Data after the end of a stream.");
    if (length > this.#receiveWindow) throw new WireError("protocol", "More data than the window allows.");
    this.#receiveWindow -= length;
  }

  /** Session: a piece of the payload announced to `expect`. */
  receive(piece: Uint8Array): void {
    if (this.#over) return;
    this.#received.put(piece);
    this.#readable.ring();
    if (this.#halfClosed) this.#armHalfClosed();
  }

  /** Session: the peer grants more window. Throws WireError `protocol` beyond 32 bits. */
  grant(increment: number): void {
    this.#sendWindow += increment;
    if (this.#sendWindow > MAX_WINDOW) throw new WireError("protocol", "A window beyond 32 bits.");
    if (increment > 0) this.#granted.ring();
  }

  /** Session: the peer has ended its side. */
  peerEnded(): void {
    if (this.#finReceived || this.#over) return;
    this.#finReceived = true;
    this.#readable.ring();
    this.#settleIfOver();
  }

  /** Session: the stream broke. A reset drops what is unread; after a lost connection it can still be read. */
  fail(failure: WireError): void {
    if (this.#over) return;
    this.#failure = failure;
    if (failure.failure === "reset") {
      this.#received.clear();
      this.#finReceived = false;
    }
    this.#readable.ring();
    this.#granted.ring();
    this.#settle(failure);
  }

  get #over(): boolean {
    return this.#failure !== undefined || (this.#finSent && this.#finReceived);
  }

  // Sent at half a window, as every yamux does: often enough never to starve a reader, seldom enough to be cheap.
  #credit(bytes: number): void {
    this.#consumed += bytes;
    this.#taken += bytes;
    if (this.#consumed < this.#window / 2 || this.#finReceived || this.#over) return;
    if (this.#taken >= GROWS_AFTER && this.#window < GROWN_WINDOW && this.#received.unread === 0) {
      this.#consumed += GROWN_WINDOW - this.#window;
      this.#window = GROWN_WINDOW;
    }
    this.#receiveWindow += this.#consumed;
    this.#host.sendWindow(this.id, 0, this.#consumed);
    this.#consumed = 0;
  }

  async #writeAll(bytes: Uint8Array): Promise<void> {
    this.#host.writers += 1;
    try {
      await this.#writeInTurns(bytes);
    } finally {
      this.#host.writers -= 1;
    }
  }

  async #writeInTurns(bytes: Uint8Array): Promise<void> {
    let at = 0;
    while (at < bytes.byteLength) {
      if (this.#failure) throw this.#failure;
      if (this.#sendWindow === 0) {
        await this.#granted.wait();
        continue;
      }
      const turn = this.#host.writers > 1 ? MAX_PAYLOAD : MAX_ALONE;
      const end = at + Math.min(bytes.byteLength - at, this.#sendWindow, turn);
      this.#sendWindow -= end - at;
      await this.#host.sendData(this.id, bytes.subarray(at, end));
      at = end;
    }
    if (this.#failure) throw this.#failure;
  }

  #sendFin(): void {
    if (this.#failure) return;
    this.#finSent = true;
    this.#host.sendWindow(this.id, FLAG.fin, 0);
    if (!this.#finReceived) this.#armHalfClosed();
    this.#settleIfOver();
  }

  #armHalfClosed(): void {
    this.#halfClosed?.cancel();
    this.#halfClosed = this.#host.whenHalfClosed(() => this.reset("The peer never ended its side of the stream."));
  }

  #settleIfOver(): void {
    if (this.#over) this.#settle(undefined);
  }

  #settle(failure: WireError | undefined): void {
    this.#halfClosed?.cancel();
    this.#host.forget(this);
    this.#settled.resolve(failure);
  }
}
