// A two-way byte stream between two nodes on a connection of its own. It uses the frames of a link, so that each side knows whether the
// other one is alive, has ended or has failed. Backpressure applies in both directions.
import type { Clock, Timer } from "#base/clock.ts";
import { ChunkQueue, type Duplex, readChunks, Wakeup, WireError } from "#src/wire/index.ts";
import type { NodeListener } from "./connect.ts";
import { type Frame, FrameReader, KIND, type Kind, toFrame } from "./node-frames.ts";
import { HEARTBEAT_INTERVAL_MS, MAX_MISSED, type WireSocket } from "./node-wire.ts";

/** If more bytes than this wait for `read`, reading from the socket is paused. */
const MAX_UNREAD_BYTES = 256 * 1024;
/** Maximum bytes of one frame. */
const MAX_FRAME_BYTES = 64 * 1024;

export class NodeStream implements Duplex, NodeListener {
  readonly closed: Promise<WireError | undefined>;
  readonly #socket: WireSocket;
  readonly #onControl: (frame: Frame) => void;
  readonly #settled = Promise.withResolvers<WireError | undefined>();
  readonly #reader = new FrameReader();
  readonly #unread = new ChunkQueue();
  readonly #changed = new Wakeup();
  readonly #timer: Timer;
  /** Data the socket has not accepted yet. */
  #unsent: Buffer | undefined;
  #writing: Promise<void> = Promise.resolve();
  #missedHeartbeats = 0;
  #isPaused = false;
  #hasEnded = false;
  #peerHasEnded = false;
  #isAcknowledged = false;
  #failure: WireError | undefined;
  #isOver = false;

  /** `onControl` receives the frames other than data: the opening request or the response to it. */
  constructor(clock: Clock, socket: WireSocket, onControl: (frame: Frame) => void) {
    this.#socket = socket;
    this.#onControl = onControl;
    this.closed = this.#settled.promise;
    this.#timer = clock.every(HEARTBEAT_INTERVAL_MS, () => this.#tick());
  }

  async read(): Promise<Uint8Array | undefined> {
    for (;;) {
      const chunk = this.#unread.shift();
      if (chunk) {
        this.#resumeReading();
        return chunk;
      }
      if (this.#failure) throw this.#failure;
      if (this.#peerHasEnded) return undefined;
      await this.#changed.wait();
    }
  }

  /** Sends a control frame after the data written so far. */
  sendControl(kind: Kind, text: string): Promise<void> {
    return this.#runSerially(() => this.#sendFrame(kind, Buffer.from(text)));
  }

  write(bytes: Uint8Array): Promise<void> {
    return this.#runSerially(async () => {
      for (let at = 0; at < bytes.length; at += MAX_FRAME_BYTES)
        await this.#sendFrame(KIND.data, bytes.subarray(at, at + MAX_FRAME_BYTES));
    });
  }

  async end(): Promise<void> {
    if (this.#hasEnded || this.#failure) return;
    this.#hasEnded = true;
    await this.#runSerially(() => this.#sendFrame(KIND.end)).catch(() => {});
  }

  reset(reason = "The connection was reset."): void {
    this.#fail(new WireError("reset", reason));
  }

  data(bytes: Buffer): void {
    this.#missedHeartbeats = 0;
    if (this.#isOver) return;
    const frames = this.#reader.readFrames(bytes);
    if (frames === "wrong") {
      this.#fail(new WireError("protocol", "The other node does not speak as nodes do."));
      return;
    }
    for (const frame of frames) {
      if (frame.kind === KIND.data) this.#unread.push(new Uint8Array(frame.body));
      else if (frame.kind === KIND.end) this.#onPeerEnd();
      else if (frame.kind === KIND.acknowledged) this.#isAcknowledged = true;
      else if (frame.kind !== KIND.alive) this.#onControl(frame);
    }
    if (this.#unread.unread > MAX_UNREAD_BYTES && !this.#isPaused) {
      this.#isPaused = true;
      this.#socket.pause();
    }
    this.#changed.wake();
    if (this.#peerHasEnded && this.#isAcknowledged) this.#finish(undefined);
  }

  drain(): void {
    this.#missedHeartbeats = 0;
    if (this.#unsent) {
      const taken = Math.max(0, this.#socket.write(this.#unsent));
      this.#unsent = taken < this.#unsent.length ? this.#unsent.subarray(taken) : undefined;
    }
    if (!this.#unsent) this.#changed.wake();
  }

  ended(): void {
    if (this.#hasEnded && this.#peerHasEnded) this.#finish(undefined);
    else this.#fail(new WireError("closed", "The connection to the other node broke."));
  }

  failed(): void {
    this.ended();
  }

  [Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    return readChunks(this);
  }

  /** Runs calls one after another, however many are made concurrently. */
  #runSerially(work: () => Promise<void>): Promise<void> {
    const result = this.#writing.then(work);
    this.#writing = result.catch(() => {});
    return result;
  }

  /** Resolves when the socket has accepted the frame. */
  async #sendFrame(kind: Kind, body: Uint8Array = new Uint8Array(0)): Promise<void> {
    if (!this.#isOver) this.#send(toFrame(kind, 0, body));
    while (this.#unsent && !this.#isOver) await this.#changed.wait();
    if (this.#isOver) throw this.#failure ?? new WireError("closed", "The connection is closed.");
  }

  #send(bytes: Buffer): void {
    const taken = Math.max(0, this.#socket.write(bytes));
    if (taken < bytes.length) this.#unsent = bytes.subarray(taken);
  }

  #resumeReading(): void {
    if (!this.#isPaused || this.#unread.unread > MAX_UNREAD_BYTES / 2) return;
    this.#isPaused = false;
    this.#socket.resume();
  }

  #tick(): void {
    // While paused, heartbeats are not read either.
    if (this.#isPaused) this.#missedHeartbeats = 0;
    if (this.#missedHeartbeats >= MAX_MISSED) {
      this.#fail(new WireError("timeout", "The other node does not answer."));
      return;
    }
    this.#missedHeartbeats += 1;
    if (!this.#unsent) this.#send(toFrame(KIND.alive, 0));
  }

  /** Acknowledges the peer's end. The peer closes only after that, because closing a connection with unread data would drop the data. */
  #onPeerEnd(): void {
    this.#peerHasEnded = true;
    void this.#runSerially(() => this.#sendFrame(KIND.acknowledged)).catch(() => {});
  }

  #fail(failure: WireError): void {
    if (this.#isOver) return;
    this.#failure = failure;
    this.#unread.clear();
    this.#finish(failure);
  }

  #finish(failure: WireError | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#timer.cancel();
    if (failure) this.#socket.terminate();
    else this.#socket.end();
    this.#changed.wake();
    this.#settled.resolve(failure);
  }
}
