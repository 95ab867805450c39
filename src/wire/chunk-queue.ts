// Bytes received and not yet read, oldest first. Keeps big pieces as views and gathers small ones in blocks of its own, so
// that what is held in memory stays within about twice the unread bytes, however the peer cuts them. [WI-6]

const KEEP_AS_VIEW = 4096;
const BLOCK = 16 * 1024;

/**
 * The same bytes without holding on to a much larger buffer: the view itself when it fills at least half of its buffer,
 * otherwise a copy. For anything that may be kept for long.
 */
export const compact = (view: Uint8Array): Uint8Array =>
  view.byteLength * 2 >= view.buffer.byteLength ? view : view.slice();

export class ChunkQueue {
  #chunks: Uint8Array[] = [];
  /** Free room behind the last chunk; set only when that chunk lives in a block of ours. */
  #room: Uint8Array | undefined;
  #unread = 0;

  /** Bytes put and not yet taken. */
  get unread(): number {
    return this.#unread;
  }

  put(piece: Uint8Array): void {
    if (piece.byteLength === 0) return;
    this.#unread += piece.byteLength;
    if (piece.byteLength >= KEEP_AS_VIEW || this.#chunks.length === 0) {
      this.#chunks.push(compact(piece));
      this.#room = undefined;
      return;
    }
    const last = this.#chunks.at(-1);
    if (last && this.#room && this.#room.byteLength >= piece.byteLength) {
      this.#room.set(piece);
      this.#room = this.#room.subarray(piece.byteLength);
      this.#chunks[this.#chunks.length - 1] = new Uint8Array(
        last.buffer,
        last.byteOffset,
        last.byteLength + piece.byteLength,
      );
      return;
    }
    const block = new Uint8Array(BLOCK);
    block.set(piece);
    this.#chunks.push(block.subarray(0, piece.byteLength));
    this.#room = block.subarray(piece.byteLength);
  }

  /** The oldest chunk, now the caller's; undefined when none exists. */
  take(): Uint8Array | undefined {
    const chunk = this.#chunks.shift();
    if (chunk === undefined) return undefined;
    // What was handed out must never change again, so its block takes no more.
    if (this.#chunks.length === 0) this.#room = undefined;
    this.#unread -= chunk.byteLength;
    return chunk;
  }

  clear(): void {
    this.#chunks = [];
    this.#room = undefined;
    this.#unread = 0;
  }
}
