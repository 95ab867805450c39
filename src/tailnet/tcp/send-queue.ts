// What waits to be sent: the bytes of writes in order, each write resolved once its last byte has been taken. [TL-23]

type Write = { readonly data: Uint8Array; at: number; readonly done: PromiseWithResolvers<void> };

export class SendQueue {
  #writes: Write[] = [];
  /** Bytes that wait. */
  bytes = 0;

  put(data: Uint8Array): Promise<void> {
    const done = Promise.withResolvers<void>();
    this.#writes.push({ data, at: 0, done });
    this.bytes += data.byteLength;
    return done.promise;
  }

  /** Up to `size` bytes off the front; a copy, since it may have to be sent again. */
  take(size: number): Uint8Array {
    const out = new Uint8Array(Math.min(size, this.bytes));
    let filled = 0;
    let finished = 0;
    while (filled < out.byteLength) {
      const write = this.#writes[finished] as Write;
      const piece = write.data.subarray(write.at, write.at + out.byteLength - filled);
      out.set(piece, filled);
      filled += piece.byteLength;
      write.at += piece.byteLength;
      if (write.at < write.data.byteLength) break;
      finished += 1;
      write.done.resolve();
    }
    if (finished > 0) this.#writes.splice(0, finished);
    this.bytes -= filled;
    return out;
  }

  /** Nothing of it will be sent. */
  fail(reason: Error): void {
    for (const { done } of this.#writes) done.reject(reason);
    this.#writes = [];
    this.bytes = 0;
  }
}
