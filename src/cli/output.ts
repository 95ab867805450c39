// Standard output and standard error as the program writes them: whole, in order, and quiet when the reader has gone. One writer for
// every verb: what `print` hands over without waiting is waited for before the program ends.

/** The reader of the output has gone, as in `slipway ... | head -1`. */
export class OutputGone extends Error {
  override readonly name = "OutputGone";
}

/** What an output writes to; the process's own streams in the program. */
export type Sink = {
  write(data: Uint8Array | string, taken: (error?: Error | null) => void): unknown;
};

/** Bytes that may wait for a reader that has stopped reading, where dropping is allowed. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;

export class Output {
  readonly #sink: Sink;
  readonly #dropsAbove: number;
  #waiting = 0;
  #dropped = 0;
  #failure: Error | undefined;
  readonly #onIdle: (() => void)[] = [];

  /** `mayDrop`: a reader that has stopped reading loses text instead of filling the memory, as the log of a server must. */
  constructor(sink: Sink, { mayDrop = false }: { mayDrop?: boolean } = {}) {
    this.#sink = sink;
    this.#dropsAbove = mayDrop ? MAX_WAITING_BYTES : Number.POSITIVE_INFINITY;
  }

  /** Why something could not be written; undefined while all of it was. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** Writes bytes as they are. Resolves when they were taken; rejects with OutputGone, or with what the system says. */
  write(data: Uint8Array | string): Promise<void> {
    const length = typeof data === "string" ? Buffer.byteLength(data) : data.byteLength;
    this.#waiting += length;
    return new Promise((resolve, reject) => {
      this.#sink.write(data, (error) => {
        if (error) this.#failure ??= isGone(error) ? new OutputGone("the output was closed") : error;
        this.#taken(length);
        if (error) reject(this.#failure);
        else resolve();
      });
    });
  }

  /** Writes text without waiting; `flushed` waits for it. */
  print(text: string): void {
    if (this.#failure) return;
    if (this.#waiting > this.#dropsAbove) {
      this.#dropped += 1;
      return;
    }
    // The failure is kept for anyone who asks.
    this.write(text).catch(() => {});
  }

  /** Resolves when everything was taken or can no longer be. */
  async flushed(): Promise<void> {
    if (this.#waiting > 0) await new Promise<void>((done) => this.#onIdle.push(done));
  }

  #taken(length: number): void {
    this.#waiting -= length;
    if (this.#waiting > 0) return;
    const dropped = this.#dropped;
    this.#dropped = 0;
    if (dropped > 0) this.print(`(${dropped} messages were dropped: the output was not read)\n`);
    if (this.#waiting === 0) for (const done of this.#onIdle.splice(0)) done();
  }
}

const isGone = (error: Error): boolean =>
  "code" in error && ["EPIPE", "ECONNRESET", "ERR_STREAM_DESTROYED"].includes(String(error.code));
