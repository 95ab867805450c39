// Sends output to one client of a terminal, in order and as fast as its stream accepts it (rules TM-5, TM-6).
import type { Clock } from "#base/clock.ts";
import { type Duplex, toWireError } from "#src/wire/index.ts";

/** Size of one write: small enough to notice that a slow client makes progress. */
const MAX_PIECE_BYTES = 16 * 1024;

export class TerminalClient {
  /** Settles when nothing more can be sent. Never rejects. */
  readonly gone: Promise<void>;
  readonly #stream: Duplex;
  readonly #clock: Clock;
  readonly #onProgress: () => void;
  #pendingChunks: Uint8Array[] = [];
  #pendingBytes = 0;
  #progressAt: number;
  #isEnding = false;
  #isClosed = false;
  #isSending = false;
  /** True while the initial output is being assembled. */
  #isHeld = false;
  readonly #disconnected = Promise.withResolvers<void>();

  /** `onProgress` is called whenever part of the pending output was sent. */
  constructor(stream: Duplex, clock: Clock, onProgress: () => void) {
    this.#stream = stream;
    this.#clock = clock;
    this.#onProgress = onProgress;
    this.#progressAt = clock.monotonic();
    this.gone = this.#disconnected.promise;
    void stream.closed.then(() => this.#stop());
  }

  /** Number of pending bytes. */
  get waiting(): number {
    return this.#pendingBytes;
  }

  /** How long the client has accepted no output although some is pending. */
  get stalled_ms(): number {
    return this.#pendingBytes === 0 ? 0 : this.#clock.monotonic() - this.#progressAt;
  }

  send(chunk: Uint8Array): void {
    if (this.#isClosed || this.#isEnding || chunk.byteLength === 0) return;
    if (this.#pendingBytes === 0) this.#progressAt = this.#clock.monotonic();
    this.#pendingChunks.push(chunk);
    this.#pendingBytes += chunk.byteLength;
    this.#sendIfReady();
  }

  /** Sends the output that `first` resolves to before any later output. */
  async begin(first: Promise<Uint8Array>): Promise<void> {
    this.#isHeld = true;
    const chunk = await first;
    this.#isHeld = false;
    if (this.#isClosed) return;
    this.#progressAt = this.#clock.monotonic();
    if (chunk.byteLength > 0) this.#pendingChunks.unshift(chunk);
    this.#pendingBytes += chunk.byteLength;
    this.#sendIfReady();
  }

  /** Ends the stream once everything was sent. */
  end(): void {
    this.#isEnding = true;
    this.#sendIfReady();
  }

  /** Resets the stream. */
  detach(reason: string): void {
    this.#stream.reset(reason);
    this.#stop();
  }

  #sendIfReady(): void {
    if (!this.#isSending && !this.#isHeld && (this.#pendingChunks.length > 0 || this.#isEnding))
      void this.#sendWaiting();
  }

  async #sendWaiting(): Promise<void> {
    this.#isSending = true;
    try {
      for (;;) {
        const chunk = this.#pendingChunks.shift();
        if (chunk === undefined) break;
        for (let at = 0; at < chunk.byteLength; at += MAX_PIECE_BYTES) {
          const piece = chunk.subarray(at, at + MAX_PIECE_BYTES);
          await this.#stream.write(piece);
          this.#pendingBytes -= piece.byteLength;
          this.#progressAt = this.#clock.monotonic();
          this.#onProgress();
        }
      }
      if (this.#isEnding) {
        await this.#stream.end();
        this.#stop();
      }
    } catch (error) {
      this.detach(toWireError(error).message);
    } finally {
      this.#isSending = false;
    }
  }

  #stop(): void {
    this.#isClosed = true;
    this.#pendingChunks = [];
    this.#pendingBytes = 0;
    this.#onProgress();
    this.#disconnected.resolve();
  }
}
