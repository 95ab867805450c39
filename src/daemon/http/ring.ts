// The last bytes that a process of a chat has written, for the model that asks for them.

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

  /** All bytes that were ever pushed. */
  get written(): number {
    return this.#written;
  }

  /** A copy of the last bytes, oldest first; with more than fit it begins behind the last byte of a character. */
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
