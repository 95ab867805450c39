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
  readonly #moved: () => void;
  #waiting: Uint8Array[] = [];
  #bytes = 0;
  #progress: number;
  #ending = false;
  #isClosed = false;
  #sending = false;
  /** True while the initial output is being assembled. */
  #isHeld = false;
  readonly #disconnected = Promise.withResolvers<void>();

  /** `moved` is called whenever part of the pending output was sent. */
  constructor(stream: Duplex, clock: Clock, moved: () => void) {
    this.#stream = stream;
    this.#clock = clock;
    this.#moved = moved;
    this.#progress = clock.monotonic();
    this.gone = this.#disconnected.promise;
    void stream.closed.then(() => this.#stop());
  }

  /** Number of pending bytes. */
  get waiting(): number {
    return this.#bytes;
  }

  /** Milliseconds for which the client has accepted nothing although output is pending. */
  get stalled_ms(): number {
    return this.#bytes === 0 ? 0 : this.#clock.monotonic() - this.#progress;
  }

  send(chunk: Uint8Array): void {
    if (this.#isClosed || this.#ending || chunk.byteLength === 0) return;
    if (this.#bytes === 0) this.#progress = this.#clock.monotonic();
    this.#waiting.push(chunk);
    this.#bytes += chunk.byteLength;
    this.#sendIfReady();
  }

  /** Sends what `first` resolves to before any later output. */
  async begin(first: Promise<Uint8Array>): Promise<void> {
    this.#isHeld = true;
    const chunk = await first;
    this.#isHeld = false;
    if (this.#isClosed) return;
    this.#progress = this.#clock.monotonic();
    if (chunk.byteLength > 0) this.#waiting.unshift(chunk);
    this.#bytes += chunk.byteLength;
    this.#sendIfReady();
  }

  /** Ends the stream once everything was sent. */
  end(): void {
    this.#ending = true;
    this.#sendIfReady();
  }

  /** Resets the stream. */
  detach(reason: string): void {
    this.#stream.reset(reason);
    this.#stop();
  }

  #sendIfReady(): void {
    if (!this.#sending && !this.#isHeld && (this.#waiting.length > 0 || this.#ending)) void this.#sendWaiting();
  }

  async #sendWaiting(): Promise<void> {
    this.#sending = true;
    try {
      for (;;) {
        const chunk = this.#waiting.shift();
        if (chunk === undefined) break;
        for (let at = 0; at < chunk.byteLength; at += MAX_PIECE_BYTES) {
          const piece = chunk.subarray(at, at + MAX_PIECE_BYTES);
          await this.#stream.write(piece);
          this.#bytes -= piece.byteLength;
          this.#progress = this.#clock.monotonic();
          this.#moved();
        }
      }
      if (this.#ending) {
        await this.#stream.end();
        this.#stop();
      }
    } catch (error) {
      this.detach(toWireError(error).message);
    } finally {
      this.#sending = false;
    }
  }

  #stop(): void {
    this.#isClosed = true;
    this.#waiting = [];
    this.#bytes = 0;
    this.#moved();
    this.#disconnected.resolve();
  }
}
