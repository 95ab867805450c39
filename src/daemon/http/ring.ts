// A ring buffer of the last bytes that a process has written.

export class OutputRing {
  readonly #bytes: Uint8Array;
  #end = 0;
  #written = 0;

  constructor(size: number) {
    this.#bytes = new Uint8Array(size);
  }

  push(chunk: Uint8Array): void {
    const size = this.#bytes.byteLength;
    this.#written += chunk.byteLength;
    const part = chunk.subarray(Math.max(0, chunk.byteLength - size));
    const first = Math.min(part.byteLength, size - this.#end);
    this.#bytes.set(part.subarray(0, first), this.#end);
    this.#bytes.set(part.subarray(first), 0);
    this.#end = (this.#end + part.byteLength) % size;
  }

  /** Total number of bytes ever pushed. */
  get written(): number {
    return this.#written;
  }

  /** Returns a copy of the last bytes, oldest first. If bytes were dropped, it begins at a character boundary. */
  snapshot(): Uint8Array {
    if (this.#written < this.#bytes.byteLength) return this.#bytes.slice(0, this.#end);
    const whole = new Uint8Array(this.#bytes.byteLength);
    const tail = this.#bytes.subarray(this.#end);
    whole.set(tail);
    whole.set(this.#bytes.subarray(0, this.#end), tail.byteLength);
    let at = 0;
    while (at < 4 && ((whole[at] as number) & 0xc0) === 0x80) at += 1;
    return whole.subarray(at);
  }
}
