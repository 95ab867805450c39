// Writes standard output and standard error: completely, in order, and silently once the reader has closed. All commands share one writer
// per stream, and the program waits for the pending writes of `print` before it exits.

/** The reader of the output has closed, as in `slipway ... | head -1`. */
export class OutputClosedError extends Error {
  override readonly name = "OutputClosedError";
}

/** The target of an output; in the program, the process's own streams. */
export type Sink = {
  write(data: Uint8Array | string, done: (error?: Error | null) => void): unknown;
};

/** Maximum number of buffered bytes for a stalled reader, if dropping is allowed. */
const MAX_PENDING_BYTES = 16 * 1024 * 1024;

export class Output {
  readonly #sink: Sink;
  readonly #dropsAbove: number;
  #pendingBytes = 0;
  #droppedCount = 0;
  #failure: Error | undefined;
  readonly #onIdle: (() => void)[] = [];

  /** `mayDrop`: drops text for a stalled reader instead of filling the memory, as a server's log must. */
  constructor(sink: Sink, { mayDrop = false }: { mayDrop?: boolean } = {}) {
    this.#sink = sink;
    this.#dropsAbove = mayDrop ? MAX_PENDING_BYTES : Number.POSITIVE_INFINITY;
  }

  /** The first write error, or undefined. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** Writes bytes. Resolves when they were written. Rejects with OutputClosedError, or with the system's error. */
  write(data: Uint8Array | string): Promise<void> {
    const length = typeof data === "string" ? Buffer.byteLength(data) : data.byteLength;
    this.#pendingBytes += length;
    return new Promise((resolve, reject) => {
      this.#sink.write(data, (error) => {
        if (error) this.#failure ??= isClosedPipe(error) ? new OutputClosedError("the output was closed") : error;
        this.#onWritten(length);
        if (error) reject(this.#failure);
        else resolve();
      });
    });
  }

  /** Writes text without waiting; `flush` waits for it. */
  print(text: string): void {
    if (this.#failure) return;
    if (this.#pendingBytes > this.#dropsAbove) {
      this.#droppedCount += 1;
      return;
    }
    // The error is kept in `failure`.
    this.write(text).catch(() => {});
  }

  /** Resolves when all pending writes have succeeded or failed. */
  async flush(): Promise<void> {
    if (this.#pendingBytes > 0) await new Promise<void>((done) => this.#onIdle.push(done));
  }

  #onWritten(length: number): void {
    this.#pendingBytes -= length;
    if (this.#pendingBytes > 0) return;
    const droppedCount = this.#droppedCount;
    this.#droppedCount = 0;
    if (droppedCount > 0) this.print(`(${droppedCount} messages were dropped: the output was not read)\n`);
    if (this.#pendingBytes === 0) for (const done of this.#onIdle.splice(0)) done();
  }
}

const isClosedPipe = (error: Error): boolean =>
  "code" in error && ["EPIPE", "ECONNRESET", "ERR_STREAM_DESTROYED"].includes(String(error.code));
