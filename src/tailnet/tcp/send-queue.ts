// The queue of outgoing bytes. The promise of a write resolves when its last byte has been taken. [TL-23]

type Write = { readonly data: Uint8Array; at: number; readonly done: PromiseWithResolvers<void>; copy: Uint8Array };

/** A long write is copied in steps of this size, since each copy allocates memory. */
const COPY_BYTES = 64 * 1024;
const NO_BYTES = new Uint8Array(0);

export class SendQueue {
  #writes: Write[] = [];
  /** Number of queued bytes. */
  bytes = 0;

  put(data: Uint8Array): Promise<void> {
    const done = Promise.withResolvers<void>();
    this.#writes.push({ data, at: 0, done, copy: NO_BYTES });
    this.bytes += data.byteLength;
    return done.promise;
  }

  /** Takes up to `size` bytes. Returns a copy, because the bytes may be retransmitted later. */
  take(size: number): Uint8Array {
    const [first] = this.#writes;
    const length = Math.min(size, this.bytes);
    if (first && first.data.byteLength - first.at >= length) return this.#takeFrom(first, length);
    const out = new Uint8Array(length);
    let filled = 0;
    let finished = 0;
    while (filled < length) {
      const write = this.#writes[finished] as Write;
      const piece = write.data.subarray(write.at, write.at + length - filled);
      out.set(piece, filled);
      filled += piece.byteLength;
      write.at += piece.byteLength;
      write.copy = NO_BYTES;
      if (write.at < write.data.byteLength) break;
      finished += 1;
      write.done.resolve();
    }
    this.#writes.splice(0, finished);
    this.bytes -= length;
    return out;
  }

  #takeFrom(write: Write, length: number): Uint8Array {
    // `write.copy` always starts with the next byte to be taken.
    if (write.copy.byteLength < length)
      write.copy = write.data.slice(write.at, write.at + Math.max(length, COPY_BYTES));
    const taken = write.copy.subarray(0, length);
    write.copy = write.copy.subarray(length);
    write.at += length;
    this.bytes -= length;
    if (write.at === write.data.byteLength) {
      this.#writes.shift();
      write.done.resolve();
    }
    return taken;
  }

  /** Discards the queue and rejects its writes. */
  fail(reason: Error): void {
    for (const { done } of this.#writes) done.reject(reason);
    this.#writes = [];
    this.bytes = 0;
  }
}
