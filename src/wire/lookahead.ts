// A bidirectional channel whose reader can put bytes back: for headers before raw bytes, such as the target of a tunneled stream or the
// head of an HTTP response. Rejects headers that exceed a limit.
import { type Duplex, readChunks } from "./duplex.ts";
import { WireError } from "./wire-error.ts";

export class Lookahead implements Duplex {
  readonly #inner: Duplex;
  #ahead: Uint8Array | undefined;
  #reading: Promise<Uint8Array | undefined> | undefined;

  constructor(inner: Duplex) {
    this.#inner = inner;
  }

  get closed(): Promise<WireError | undefined> {
    return this.#inner.closed;
  }

  async read(): Promise<Uint8Array | undefined> {
    if (this.#ahead) {
      const chunk = this.#ahead;
      this.#ahead = undefined;
      return chunk;
    }
    const reading = this.#reading ?? this.#inner.read();
    this.#reading = undefined;
    return reading;
  }

  /** Puts bytes back: the next `read` returns them first. */
  unread(bytes: Uint8Array): void {
    if (bytes.byteLength === 0) return;
    this.#ahead = this.#ahead ? join(bytes, this.#ahead) : bytes;
  }

  /** Returns at maxBytes this many of the next bytes; undefined when the channel has ended. */
  async readAtMost(maxBytes: number): Promise<Uint8Array | undefined> {
    const chunk = await this.read();
    if (chunk === undefined || chunk.byteLength <= maxBytes) return chunk;
    this.unread(chunk.subarray(maxBytes));
    return chunk.subarray(0, maxBytes);
  }

  /** Returns exactly this many bytes. Throws WireError `closed` if the channel ends before. */
  async readExactly(length: number): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    for (let missing = length; missing > 0; ) {
      const chunk = await this.read();
      if (chunk === undefined) throw new WireError("closed", "The stream ended too early.");
      this.unread(chunk.subarray(missing));
      parts.push(chunk.subarray(0, missing));
      missing -= Math.min(missing, chunk.byteLength);
    }
    return parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts);
  }

  /**
   * Returns the bytes before the next `mark` (ASCII), and consumes the mark; undefined if the channel ends before any byte. Throws
   * WireError `too_large` beyond `limit` bytes, and `closed` if the channel ends before the mark.
   */
  async readUntil(mark: string, limit: number): Promise<string | undefined> {
    let buffered: Buffer = Buffer.alloc(0);
    for (;;) {
      const chunk = await this.read();
      if (chunk === undefined) {
        if (buffered.byteLength === 0) return undefined;
        throw new WireError("closed", "The stream ended too early.");
      }
      const from = Math.max(0, buffered.byteLength - mark.length);
      buffered =
        buffered.byteLength === 0
          ? Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
          : Buffer.concat([buffered, chunk]);
      const end = buffered.indexOf(mark, from, "latin1");
      if (end > limit || (end < 0 && buffered.byteLength > limit + mark.length))
        throw new WireError("too_large", "The head is too long.");
      if (end < 0) continue;
      this.unread(buffered.subarray(end + mark.length));
      return buffered.toString("latin1", 0, end);
    }
  }

  /** Resolves when bytes arrive or the channel ends, neither of which should happen on an idle channel. The bytes can still be read. */
  async waitForActivity(): Promise<void> {
    if (this.#ahead) return;
    this.#reading ??= this.#inner.read();
    await this.#reading.then(
      () => {},
      () => {},
    );
  }

  write(bytes: Uint8Array): Promise<void> {
    return this.#inner.write(bytes);
  }

  end(): Promise<void> {
    return this.#inner.end();
  }

  reset(reason?: string): void {
    this.#inner.reset(reason);
  }

  [Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    return readChunks(this);
  }
}

const join = (a: Uint8Array, b: Uint8Array): Uint8Array => {
  const whole = new Uint8Array(a.byteLength + b.byteLength);
  whole.set(a);
  whole.set(b, a.byteLength);
  return whole;
};
